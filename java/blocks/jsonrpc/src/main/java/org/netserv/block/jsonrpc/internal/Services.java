// SPDX-License-Identifier: Apache-2.0
package org.netserv.block.jsonrpc.internal;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import jakarta.servlet.Servlet;
import java.util.Dictionary;
import java.util.HashSet;
import java.util.Hashtable;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;
import org.netserv.block.jsonrpc.JsonRpc;
import org.osgi.framework.BundleContext;
import org.osgi.framework.Constants;
import org.osgi.framework.ServiceReference;
import org.osgi.framework.ServiceRegistration;
import org.osgi.util.tracker.ServiceTrackerCustomizer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Makes a servlet for each service that has a name, as long as it is there. */
final class Services implements ServiceTrackerCustomizer<Object, Services.Exposed> {
    private static final Logger LOG = LoggerFactory.getLogger(Services.class);
    private static final Pattern NAME = Pattern.compile("[A-Za-z0-9][A-Za-z0-9._-]{0," + (Limits.NAME_CHARS - 1) + "}");

    /** A service that is callable, under a name that no other one has. */
    record Exposed(String name, ServiceRegistration<Servlet> servlet) {
    }

    private final BundleContext context;
    private final Gson gson = new GsonBuilder().disableHtmlEscaping().serializeNulls().create();
    private final Set<String> names = new HashSet<>();

    Services(BundleContext context) {
        this.context = context;
    }

    @Override
    public Exposed addingService(ServiceReference<Object> reference) {
        String name = String.valueOf(reference.getProperty(JsonRpc.NAME));
        String refusal = take(name);
        if (refusal != null) {
            LOG.error("{} is not callable by JSON-RPC: {}", reference, refusal);
            return null;
        }
        Object service = context.getService(reference);
        MethodTable methods = service == null ? null
                : MethodTable.of(service.getClass(), List.of((String[]) reference.getProperty(Constants.OBJECTCLASS)));
        if (methods == null || methods.isEmpty()) {
            LOG.error("{} is not callable by JSON-RPC: it is not registered under an interface with methods", reference);
            context.ungetService(reference);
            give(name);
            return null;
        }
        Logger log = LOG;
        Dispatcher dispatcher = new Dispatcher(new Caller(service, methods, gson), gson,
                (method, cause) -> log.error("{} of the JSON-RPC service {} failed", method, name, cause));
        return new Exposed(name, register(name, dispatcher));
    }

    private ServiceRegistration<Servlet> register(String name, Dispatcher dispatcher) {
        Dictionary<String, Object> properties = new Hashtable<>();
        properties.put("osgi.http.whiteboard.servlet.pattern", "/" + name);
        properties.put("osgi.http.whiteboard.servlet.name", "netserv.jsonrpc." + name);
        return context.registerService(Servlet.class, new RpcServlet(dispatcher), properties);
    }

    @Override
    public void modifiedService(ServiceReference<Object> reference, Exposed exposed) {
        // A service keeps the name that it came with.
    }

    @Override
    public void removedService(ServiceReference<Object> reference, Exposed exposed) {
        exposed.servlet().unregister();
        context.ungetService(reference);
        give(exposed.name());
    }

    /** Takes a name, or returns why it cannot be had. */
    private synchronized String take(String name) {
        if (!NAME.matcher(name).matches()) {
            return "its name must be 1 to " + Limits.NAME_CHARS + " letters, digits, '.', '_' and '-'";
        }
        if (names.size() >= Limits.SERVICES) {
            return "there are " + Limits.SERVICES + " such services already";
        }
        return names.add(name) ? null : "another service has the name " + name;
    }

    private synchronized void give(String name) {
        names.remove(name);
    }
}
