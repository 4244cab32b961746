// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import java.util.function.Function;
import org.netserv.block.Cache;
import org.netserv.block.Compression;
import org.netserv.block.Control;
import org.netserv.block.Counters;
import org.netserv.block.Crypto;
import org.netserv.block.Hash;
import org.netserv.block.HttpCaller;
import org.netserv.block.Injector;
import org.netserv.block.KeyValueStore;
import org.netserv.block.Log;
import org.netserv.block.Media;
import org.netserv.block.NodeInfo;
import org.netserv.block.Search;
import org.netserv.block.Sip;
import org.netserv.block.State;
import org.netserv.block.Timers;
import org.netserv.host.cache.ModuleCache;
import org.netserv.host.client.Caller;
import org.netserv.host.compute.CompressionBlock;
import org.netserv.host.compute.CryptoBlock;
import org.netserv.host.compute.HashBlock;
import org.netserv.host.compute.SearchBlock;
import org.netserv.host.compute.SipBlock;
import org.netserv.host.media.ModuleMedia;
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
    /** Capabilities that bundles can require: the building blocks that are not bundles. */
    static final String CAPABILITIES = capabilities(
            "cache", "clock", "compress", "control", "counters", "crypto", "hash", "http-client", "inject", "kv", "log",
            "match", "media", "metrics", "node", "packet", "properties", "random", "sip",
            "state", "timers");
    private static final String PROCESSORS = "(" + Constants.OBJECTCLASS + "=" + PacketProcessor.class.getName() + ")";

    private final BundleContext system;
    private final ModuleIndex modules;
    private final SharedBlocks shared;
    private final Log hostLog;

    ModuleServices(BundleContext system, ModuleIndex modules, SharedBlocks shared, Log hostLog) {
        this.system = system;
        this.modules = modules;
        this.shared = shared;
        this.hostLog = hostLog;
    }

    /** Registers the services, and takes packet processors from here on. */
    void open() {
        offer(ModuleContext.class, module -> module);
        offer(KeyValueStore.class, Module::kv);
        offer(Counters.class, Module::counters);
        offer(Timers.class, Module::timers);
        offer(Injector.class, Module::injector);
        offer(NodeInfo.class, Module::facts);
        offer(PacketDispatcher.class, Module::processors);
        offer("cache", Cache.class, module -> new ModuleCache(shared.cache(), module.name()));
        offer("compress", Compression.class, module -> new CompressionBlock());
        offer("control", Control.class, module -> module.moduleControl().open());
        offer("crypto", Crypto.class, module -> new CryptoBlock());
        offer("hash", Hash.class, module -> new HashBlock());
        offer("http-client", HttpCaller.class, module -> new Caller(shared.client()));
        offer("match", Search.class, module -> new SearchBlock());
        offer("media", Media.class, module -> new ModuleMedia(module.slot()));
        offer("sip", Sip.class, module -> new SipBlock());
        offer("state", State.class, Module::moduleState);
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

    /** Offers a block that costs something only once a module asks for it. */
    private <S> void offer(String name, Class<S> type, Function<Module, S> made) {
        offer(type, module -> module.block(name, type, () -> made.apply(module)));
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
