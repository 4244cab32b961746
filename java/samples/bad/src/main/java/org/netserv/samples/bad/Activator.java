// SPDX-License-Identifier: Apache-2.0
package org.netserv.samples.bad;

import java.time.Duration;
import java.util.Locale;
import org.netserv.block.State;
import org.netserv.module.ModuleContext;
import org.netserv.packet.PacketProcessor;
import org.osgi.framework.BundleActivator;
import org.osgi.framework.BundleContext;

/** Does what the property {@code behaviour} says, when the property {@code when} says. */
public final class Activator implements BundleActivator {
    private Behaviour behaviour;
    private String when;
    private Surroundings surroundings;

    /** Builds an activator. */
    public Activator() {
    }

    @Override
    public void start(BundleContext bundle) throws Exception {
        ModuleContext module = bundle.getService(bundle.getServiceReference(ModuleContext.class));
        behaviour = Behaviour.valueOf(module.property("behaviour", "nothing").toUpperCase(Locale.ROOT).replace('-', '_'));
        when = module.property("when", "packet");
        surroundings = new Surroundings(bundle, module);
        if (when.equals("start")) {
            behaviour.act(surroundings);
        }
        if (when.equals("timer")) {
            module.timers().once(Duration.ofSeconds(1), () -> behaviour.act(surroundings));
        }
        if (when.equals("export") || when.equals("import")) {
            bundle.getService(bundle.getServiceReference(State.class)).carry(new Misbehaving());
        }
        Processor processor = new Processor(when.equals("packet") ? behaviour : Behaviour.NOTHING, surroundings);
        bundle.registerService(PacketProcessor.class, processor, null);
    }

    @Override
    public void stop(BundleContext bundle) throws Exception {
        if (when.equals("stop")) {
            behaviour.act(surroundings);
        }
    }

    /** Says one byte of state, and takes any. */
    private final class Misbehaving implements State.Carrier {
        @Override
        public byte[] exportState() throws Exception {
            if (when.equals("export")) {
                behaviour.act(surroundings);
            }
            return new byte[1];
        }

        @Override
        public void importState(byte[] state) throws Exception {
            if (when.equals("import")) {
                behaviour.act(surroundings);
            }
        }
    }
}
