// SPDX-License-Identifier: Apache-2.0
package org.netserv.block.set.bundles;

import jakarta.servlet.Servlet;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.Hashtable;
import java.util.Map;
import org.osgi.framework.BundleActivator;
import org.osgi.framework.BundleContext;

/** A servlet of the newer generation: tells how long the body is, or fails. */
public final class JakartaActivator implements BundleActivator {
    @Override
    public void start(BundleContext context) {
        Hashtable<String, Object> properties =
                new Hashtable<>(Map.of("osgi.http.whiteboard.servlet.pattern", "/jakarta/*"));
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
        protected void service(HttpServletRequest request, HttpServletResponse response) throws IOException {
            if ("/fail".equals(request.getPathInfo())) {
                throw new IllegalStateException("a secret of the inside");
            }
            response.setContentType("text/plain");
            response.getWriter().print("jakarta " + request.getInputStream().readAllBytes().length);
        }
    }
}
