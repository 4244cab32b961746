// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;
import org.osgi.framework.Constants;

/**
 * The headers of a bundle's manifest, read before the framework does: stricter, so that two readers cannot take one jar
 * for two different bundles.
 */
final class BundleFile {
    private static final String MANIFEST = "META-INF/MANIFEST.MF";

    private final Map<String, String> headers;

    private BundleFile(Map<String, String> headers) {
        this.headers = headers;
    }

    /**
     * Reads a jar.
     *
     * @throws Refusal {@link Refusal#BAD_CODE} if it is not a bundle that can be started
     */
    static BundleFile read(File jar) throws Refusal {
        BundleFile file = new BundleFile(headers(manifest(jar)));
        if (file.symbolicName().isEmpty()) {
            throw bad("the jar is not a bundle: its manifest has no " + Constants.BUNDLE_SYMBOLICNAME);
        }
        if (!"2".equals(file.headers.get("bundle-manifestversion"))) {
            throw bad("the bundle's manifest has no Bundle-ManifestVersion: 2");
        }
        if (file.headers.containsKey("fragment-host")) {
            throw bad("the bundle is a fragment; a fragment cannot be a module");
        }
        return file;
    }

    /** Returns the symbolic name without directives. */
    String symbolicName() {
        String header = headers.getOrDefault("bundle-symbolicname", "");
        return header.split(";", 2)[0].trim();
    }

    /** Returns whether the bundle has components for a component runtime. */
    boolean hasComponents() {
        return headers.containsKey("service-component");
    }

    private static byte[] manifest(File jar) throws Refusal {
        try (ZipFile zip = new ZipFile(jar)) {
            List<? extends ZipEntry> found = zip.stream()
                    .filter(entry -> entry.getName().equalsIgnoreCase(MANIFEST)).limit(2).toList();
            if (found.size() != 1 || !found.get(0).getName().equals(MANIFEST)) {
                throw bad("the jar has " + (found.isEmpty() ? "no" : "more than one") + " " + MANIFEST);
            }
            try (InputStream stream = zip.getInputStream(found.get(0))) {
                byte[] bytes = stream.readNBytes(Limits.MANIFEST_BYTES_MAX + 1);
                if (bytes.length > Limits.MANIFEST_BYTES_MAX) {
                    throw bad("the bundle's manifest is longer than " + Limits.MANIFEST_BYTES_MAX + " bytes");
                }
                return bytes;
            }
        } catch (IOException | IllegalArgumentException broken) {
            throw bad("the file is not a jar: " + broken.getMessage());
        }
    }

    private static Map<String, String> headers(byte[] manifest) throws Refusal {
        Map<String, String> headers = new HashMap<>();
        String name = null;
        for (String line : new String(manifest, StandardCharsets.UTF_8).split("\r\n|\n|\r")) {
            if (line.isEmpty()) {
                break;
            }
            if (line.charAt(0) == ' ') {
                if (name == null) {
                    throw bad("the bundle's manifest starts with a continued line");
                }
                headers.merge(name, line.substring(1), String::concat);
                continue;
            }
            int colon = line.indexOf(": ");
            int end = colon < 0 && line.endsWith(":") ? line.length() - 1 : colon;
            if (end <= 0) {
                throw bad("the bundle's manifest has a line that is no header: " + Text.cut(line, 80));
            }
            name = line.substring(0, end).toLowerCase(Locale.ROOT);
            if (headers.put(name, line.substring(Math.min(end + 2, line.length()))) != null) {
                throw bad("the bundle's manifest has the header " + line.substring(0, end) + " twice");
            }
        }
        return headers;
    }

    private static Refusal bad(String detail) {
        return new Refusal(Refusal.BAD_CODE, detail);
    }
}
