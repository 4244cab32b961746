// SPDX-License-Identifier: Apache-2.0
package org.netserv.block.set;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.jar.Attributes;
import java.util.jar.JarEntry;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;

/** Makes a jar from classes of the test and a manifest. */
final class TestBundle {
    private final Manifest manifest = new Manifest();
    private final Map<String, byte[]> entries = new LinkedHashMap<>();
    private final String name;

    TestBundle(String name) {
        this.name = name;
        manifest.getMainAttributes().put(Attributes.Name.MANIFEST_VERSION, "1.0");
        header("Bundle-ManifestVersion", "2");
        header("Bundle-SymbolicName", name);
    }

    TestBundle header(String key, String value) {
        manifest.getMainAttributes().putValue(key, value);
        return this;
    }

    TestBundle activator(Class<?> type) throws IOException {
        return header("Bundle-Activator", type.getName()).classes(type);
    }

    /** Adds classes with those inside of them. */
    TestBundle classes(Class<?>... types) throws IOException {
        for (Class<?> type : types) {
            String path = type.getName().replace('.', '/') + ".class";
            try (InputStream in = type.getClassLoader().getResourceAsStream(path)) {
                entries.put(path, in.readAllBytes());
            }
            classes(type.getDeclaredClasses());
        }
        return this;
    }

    TestBundle file(String path, String text) {
        entries.put(path, text.getBytes(StandardCharsets.UTF_8));
        return this;
    }

    Path write(Path folder) throws IOException {
        Path jar = folder.resolve(name + ".jar");
        try (OutputStream out = Files.newOutputStream(jar); JarOutputStream zip = new JarOutputStream(out, manifest)) {
            for (Map.Entry<String, byte[]> entry : entries.entrySet()) {
                zip.putNextEntry(new JarEntry(entry.getKey()));
                zip.write(entry.getValue());
            }
        }
        return jar;
    }
}
