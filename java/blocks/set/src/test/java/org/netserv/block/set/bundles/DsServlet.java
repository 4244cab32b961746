// SPDX-License-Identifier: Apache-2.0
package org.netserv.block.set.bundles;

import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.Map;

/** A component of Declarative Services that is a servlet and shows its configuration. */
public final class DsServlet extends HttpServlet {
    private static final long serialVersionUID = 1L;

    private transient volatile Map<String, Object> configuration;

    /** Called by Declarative Services with the component's properties. */
    void activate(Map<String, Object> properties) {
        configuration = properties;
    }

    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
        response.getWriter().print("component " + configuration.get("colour"));
    }
}
