// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import java.io.IOException;
import java.net.URL;
import java.net.URLConnection;
import java.net.URLStreamHandler;
import java.net.spi.URLStreamHandlerProvider;
import java.util.Collections;
import java.util.Enumeration;
import org.osgi.framework.Bundle;
import org.osgi.framework.BundleContext;

/**
 * Opens {@code bundle:} URLs that went through a text, as bundles that look for resources often do. The framework's own
 * support for that, which is off, takes the one factory for URLs that a JVM has, and walks the stack for each of them.
 */
public final class BundleUrls extends URLStreamHandlerProvider {
    private static final String PROTOCOL = "bundle";

    private static volatile BundleContext system;

    /** Makes the provider; the JVM calls this. */
    public BundleUrls() {
        // Finds the framework when a URL is opened.
    }

    /** Says whose bundles are meant. */
    static void use(BundleContext context) {
        system = context;
    }

    @Override
    public URLStreamHandler createURLStreamHandler(String protocol) {
        return PROTOCOL.equals(protocol) ? new Handler() : null;
    }

    private static final class Handler extends URLStreamHandler {
        @Override
        protected URLConnection openConnection(URL url) throws IOException {
            BundleContext context = system;
            Bundle bundle = context == null ? null : context.getBundle(bundleId(url));
            URL found = bundle == null ? null : find(bundle, url);
            if (found == null) {
                throw new IOException("no such resource: " + url);
            }
            return found.openConnection();
        }

        /** Returns the number of the bundle, which the host's name has behind the framework's: {@code uuid_17.0}. */
        private static long bundleId(URL url) throws IOException {
            String host = url.getHost();
            int end = host.lastIndexOf('.');
            try {
                return Long.parseLong(host.substring(host.lastIndexOf('_') + 1, end < 0 ? host.length() : end));
            } catch (NumberFormatException broken) {
                throw new IOException("no bundle in " + url, broken);
            }
        }

        /** Returns the bundle's own URL of the same text, which it can open. */
        private static URL find(Bundle bundle, URL url) throws IOException {
            Enumeration<URL> resources = bundle.getResources(url.getPath());
            for (URL one : Collections.list(resources == null ? Collections.emptyEnumeration() : resources)) {
                if (one.toExternalForm().equals(url.toExternalForm())) {
                    return one;
                }
            }
            return bundle.getEntry(url.getPath());
        }
    }
}
