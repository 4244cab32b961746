// SPDX-License-Identifier: Apache-2.0
package org.netserv.block.set.bundles;

import java.io.IOException;
import java.util.Hashtable;
import java.util.Map;
import javax.servlet.Servlet;
import javax.servlet.http.HttpServlet;
import javax.servlet.http.HttpServletRequest;
import javax.servlet.http.HttpServletResponse;
import org.osgi.framework.BundleActivator;
import org.osgi.framework.BundleContext;

/** A servlet of the older generation. */
public final class JavaxActivator implements BundleActivator {
    @Override
    public void start(BundleContext context) {
        Hashtable<String, Object> properties =
                new Hashtable<>(Map.of("osgi.http.whiteboard.servlet.pattern", "/javax"));
        context.registerService(Servlet.class, new Hello(), properties);
    }

    @Override
    public void stop(BundleContext context) {
        // The framework takes the registration back.
    }

    /** The servlet. */
    public static final class Hello extends HttpServlet {
        private static final long serialVersionUID = 1L;

        @Override
        protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
            response.getWriter().print("javax");
        }
    }
}
