// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import java.util.function.Function;
import org.netserv.block.Counters;
import org.netserv.block.Crypto;
import org.netserv.block.Hash;
import org.netserv.block.Injector;
import org.netserv.block.KeyValueStore;
import org.netserv.block.Log;
import org.netserv.block.Search;
import org.netserv.block.Sip;
import org.netserv.block.Timers;
import org.netserv.host.compute.CryptoBlock;
import org.netserv.host.compute.HashBlock;
import org.netserv.host.compute.SearchBlock;
import org.netserv.host.compute.SipBlock;
import org.netserv.module.ModuleContext;
import org.netserv.packet.PacketDispatcher;
import org.netserv.packet.PacketProcessor;
import org.osgi.framework.AllServiceListener;
import org.osgi.framework.Bundle;
import org.osgi.framework.BundleContext;
import org.osgi.framework.Constants;
import org.osgi.framework.InvalidSyntaxException;
import org.osgi.framework.ServiceEvent;
import org.osgi.framework.ServiceFactory;
import org.osgi.framework.ServiceReference;
import org.osgi.framework.ServiceRegistration;

/** What the host offers to bundles as services, each bound to the bundle that asks; and the services it takes. */
final class ModuleServices implements AllServiceListener {
    /** Capabilities that bundles can require: the building blocks that are always there. */
    static final String CAPABILITIES = capabilities(
            "clock", "counters", "crypto", "hash", "inject", "kv", "log", "match", "metrics", "packet", "properties",
            "random", "sip", "timers");
    private static final String PROCESSORS = "(" + Constants.OBJECTCLASS + "=" + PacketProcessor.class.getName() + ")";

    private final BundleContext system;
    private final ModuleIndex modules;
    private final Log hostLog;

    ModuleServices(BundleContext system, ModuleIndex modules, Log hostLog) {
        this.system = system;
        this.modules = modules;
        this.hostLog = hostLog;
    }

    /** Registers the services, and takes packet processors from here on. */
    void open() {
        offer(ModuleContext.class, module -> module);
        offer(KeyValueStore.class, Module::kv);
        offer(Counters.class, Module::counters);
        offer(Timers.class, Module::timers);
        offer(Injector.class, Module::injector);
        offer(PacketDispatcher.class, Module::processors);
        offer(Crypto.class, module -> module.compute(Crypto.class, CryptoBlock::new));
        offer(Hash.class, module -> module.compute(Hash.class, HashBlock::new));
        offer(Search.class, module -> module.compute(Search.class, SearchBlock::new));
        offer(Sip.class, module -> module.compute(Sip.class, SipBlock::new));
        system.registerService(Log.class, new BoundTo<>(module -> module.log(), hostLog), null);
        try {
            system.addServiceListener(this, PROCESSORS);
        } catch (InvalidSyntaxException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    @Override
    public void serviceChanged(ServiceEvent event) {
        ServiceReference<?> reference = event.getServiceReference();
        Module module = modules.of(reference.getBundle());
        if (module == null) {
            return;
        }
        switch (event.getType()) {
            case ServiceEvent.REGISTERED, ServiceEvent.MODIFIED -> take(module, reference);
            case ServiceEvent.UNREGISTERING, ServiceEvent.MODIFIED_ENDMATCH -> {
                if (module.processors().take(reference)) {
                    system.ungetService(reference);
                }
            }
            default -> { }
        }
    }

    private void take(Module module, ServiceReference<?> reference) {
        Object service = system.getService(reference);
        if (!(service instanceof PacketProcessor processor)) {
            module.log().error("a packet processor was registered that is of another API: the bundle has to import "
                    + "org.netserv.packet, not to contain it");
            return;
        }
        int ranking = reference.getProperty(Constants.SERVICE_RANKING) instanceof Integer number ? number : 0;
        try {
            module.processors().put(reference, ranking, processor);
        } catch (IllegalStateException tooMany) {
            module.log().error(tooMany.getMessage());
        }
    }

    private <S> void offer(Class<S> type, Function<Module, S> choice) {
        system.registerService(type, new BoundTo<>(choice, null), null);
    }

    private static String capabilities(String... names) {
        StringBuilder text = new StringBuilder();
        for (String name : names) {
            text.append(text.isEmpty() ? "" : ",").append("netserv.block;name=").append(name)
                    .append(";version:Version=1.0");
        }
        return text.toString();
    }

    private final class BoundTo<S> implements ServiceFactory<S> {
        private final Function<Module, S> choice;
        private final S otherwise;

        BoundTo(Function<Module, S> choice, S otherwise) {
            this.choice = choice;
            this.otherwise = otherwise;
        }

        @Override
        public S getService(Bundle bundle, ServiceRegistration<S> registration) {
            Module module = modules.of(bundle);
            return module == null ? otherwise : choice.apply(module);
        }

        @Override
        public void ungetService(Bundle bundle, ServiceRegistration<S> registration, S service) {
            // What a module has lasts as long as the module.
        }
    }
}
