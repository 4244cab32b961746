// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.InvocationTargetException;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.Dictionary;
import java.util.Enumeration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Hashtable;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.osgi.framework.AllServiceListener;
import org.osgi.framework.Bundle;
import org.osgi.framework.BundleContext;
import org.osgi.framework.Constants;
import org.osgi.framework.InvalidSyntaxException;
import org.osgi.framework.ServiceEvent;
import org.osgi.framework.ServiceReference;

/**
 * The properties of modules as configurations: each {@code ManagedService} of a module, and each of its components, gets
 * them under its PID. The PID is targeted at the bundle, so that no other one gets them, another version of the module
 * neither.
 */
final class Configurations implements AllServiceListener {
    private static final String ADMIN = "org.osgi.service.cm.ConfigurationAdmin";
    private static final String CONFIGURATION = "org.osgi.service.cm.Configuration";
    private static final String MANAGED = "(" + Constants.OBJECTCLASS + "=org.osgi.service.cm.ManagedService)";
    private static final Pattern COMPONENT = Pattern.compile("<(?:[\\w.-]+:)?component\\b([^>]*)>");
    private static final Pattern CLASS = Pattern.compile("<implementation\\b[^>]*\\bclass\\s*=\\s*[\"']([^\"']+)[\"']");
    private static final Pattern NAME = attribute("name");
    private static final Pattern PID = attribute("configuration-pid");

    private final BundleContext system;
    private final ModuleIndex modules;
    private final Map<Bundle, Made> made = new HashMap<>();

    /** What one bundle has: its PIDs, and the configurations. Guarded by the table. */
    private record Made(Set<String> pids, List<Object> configurations) {
    }

    Configurations(BundleContext system, ModuleIndex modules) {
        this.system = system;
        this.modules = modules;
    }

    /** Looks at the services of modules from here on. */
    void open() {
        try {
            system.addServiceListener(this, MANAGED);
        } catch (InvalidSyntaxException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    @Override
    public void serviceChanged(ServiceEvent event) {
        Bundle bundle = event.getServiceReference().getBundle();
        Module module = modules.of(bundle);
        if (module != null && event.getType() == ServiceEvent.REGISTERED) {
            configure(module, bundle, pids(event.getServiceReference().getProperty(Constants.SERVICE_PID)));
        }
    }

    /** Configures the components of a module that is about to start; on a thread of the module's. */
    void configureComponents(Module module) {
        configure(module, module.bundle(), pidsOfComponents(module.bundle()));
    }

    /** Returns whether a bundle has configurations. */
    boolean has(Bundle bundle) {
        synchronized (made) {
            return made.containsKey(bundle);
        }
    }

    /** Forgets the configurations of a bundle that is stopped; on a thread of the module's, since others may listen. */
    void forget(Bundle bundle) {
        Made gone;
        synchronized (made) {
            gone = made.remove(bundle);
        }
        if (gone != null) {
            for (Object configuration : gone.configurations()) {
                try {
                    call(configuration, CONFIGURATION, "delete");
                } catch (ReflectiveOperationException | RuntimeException alreadyGone) {
                    // The block was stopped, or somebody deleted it.
                }
            }
        }
    }

    private void configure(Module module, Bundle bundle, Collection<String> pids) {
        ServiceReference<?> reference = system.getServiceReference(ADMIN);
        Object admin = reference == null || module.properties().isEmpty() ? null : system.getService(reference);
        if (admin == null) {
            return;
        }
        for (String pid : pids) {
            try {
                configure(module, bundle, admin, pid);
            } catch (ReflectiveOperationException | RuntimeException refused) {
                Throwable why = refused instanceof InvocationTargetException thrown ? thrown.getCause() : refused;
                module.log().warn("the module's properties are no configuration for " + pid + ": " + why);
            }
        }
    }

    private void configure(Module module, Bundle bundle, Object admin, String pid) throws ReflectiveOperationException {
        Made ofBundle;
        synchronized (made) {
            ofBundle = made.computeIfAbsent(bundle, unused -> new Made(new HashSet<>(), new ArrayList<>()));
            if (ofBundle.pids().size() >= Limits.CONFIGURATIONS_MAX || !ofBundle.pids().add(pid)) {
                return;
            }
        }
        String target = pid + "|" + bundle.getSymbolicName() + "|" + bundle.getVersion() + "|" + bundle.getLocation();
        Object configuration = call(admin, ADMIN, "getConfiguration", target, bundle.getLocation());
        synchronized (made) {
            ofBundle.configurations().add(configuration);
        }
        Dictionary<String, Object> properties = new Hashtable<>(module.properties());
        api(configuration, CONFIGURATION).getMethod("update", Dictionary.class).invoke(configuration, properties);
    }

    /** Calls a method with texts as arguments. */
    private static Object call(Object object, String type, String method, Object... texts)
            throws ReflectiveOperationException {
        Class<?>[] types = Collections.nCopies(texts.length, String.class).toArray(Class<?>[]::new);
        return api(object, type).getMethod(method, types).invoke(object, texts);
    }

    /** Returns an interface of Configuration Admin, which the host itself has not. */
    private static Class<?> api(Object object, String type) throws ClassNotFoundException {
        return Class.forName(type, false, object.getClass().getClassLoader());
    }

    private static Collection<String> pids(Object property) {
        Set<String> pids = new LinkedHashSet<>();
        if (property instanceof String[] several) {
            Collections.addAll(pids, several);
        } else if (property instanceof Collection<?> several) {
            several.forEach(one -> pids.add(String.valueOf(one)));
        } else if (property != null) {
            pids.add(property.toString());
        }
        pids.remove(null);
        return pids;
    }

    private static Collection<String> pidsOfComponents(Bundle bundle) {
        Set<String> pids = new LinkedHashSet<>();
        String header = bundle.getHeaders("").get("Service-Component");
        for (String path : header == null ? new String[0] : header.split(",")) {
            String name = path.split(";", 2)[0].trim();
            int slash = name.lastIndexOf('/');
            Enumeration<URL> found = bundle.findEntries(name.substring(0, slash + 1), name.substring(slash + 1), false);
            for (URL url : found == null ? List.<URL>of() : Collections.list(found)) {
                addPids(url, pids);
            }
        }
        return pids;
    }

    private static void addPids(URL url, Set<String> pids) {
        String text;
        try (InputStream stream = url.openStream()) {
            text = new String(stream.readNBytes(Limits.COMPONENT_BYTES_MAX), StandardCharsets.UTF_8);
        } catch (IOException unreadable) {
            // The component runtime says so.
            return;
        }
        Matcher component = COMPONENT.matcher(text);
        for (int count = 0; count < Limits.CONFIGURATIONS_MAX && component.find(); count++) {
            String name = first(NAME, component.group(1), first(CLASS, text.substring(component.end()), ""));
            for (String pid : first(PID, component.group(1), name).trim().split("\\s+")) {
                pids.add(pid.equals("$") ? name : pid);
            }
        }
        pids.remove("");
    }

    private static String first(Pattern pattern, String text, String otherwise) {
        Matcher matcher = pattern.matcher(text);
        return matcher.find() ? matcher.group(1) : otherwise;
    }

    private static Pattern attribute(String name) {
        return Pattern.compile("(?:^|\\s)" + name + "\\s*=\\s*[\"']([^\"']*)[\"']");
    }
}
