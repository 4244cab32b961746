// SPDX-License-Identifier: Apache-2.0
package org.netserv.block.set;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.jar.JarFile;
import java.util.jar.Manifest;
import java.util.stream.Stream;
import org.osgi.framework.FrameworkUtil;
import org.osgi.framework.InvalidSyntaxException;
import org.osgi.framework.Version;
import org.osgi.framework.VersionRange;

/** Tells which blocks a bundle needs, from manifests and {@code blocks.properties} alone. */
final class BlockIndex {
    private final Map<String, Block> blocks = new TreeMap<>();
    private final Properties properties = new Properties();

    record Block(String name, Path jar, Manifest manifest, List<Header.Clause> packages,
            List<Header.Clause> capabilities) {
    }

    BlockIndex(Path folder) throws IOException {
        try (Stream<Path> jars = Files.list(folder)) {
            jars.filter(jar -> jar.toString().endsWith(".jar")).forEach(this::add);
        }
        try (InputStream in = Files.newInputStream(folder.resolve("blocks.properties"))) {
            properties.load(in);
        }
    }

    private void add(Path jar) {
        try (JarFile file = new JarFile(jar.toFile())) {
            Manifest manifest = file.getManifest();
            String name = Header.parse(manifest, "Bundle-SymbolicName").get(0).names().get(0);
            blocks.put(name, new Block(name, jar, manifest, Header.parse(manifest, "Export-Package"),
                    Header.parse(manifest, "Provide-Capability")));
        } catch (IOException broken) {
            throw new UncheckedIOException(broken);
        }
    }

    Collection<Block> all() {
        return blocks.values();
    }

    /** Returns what blocks.properties has under this prefix, without it. */
    Map<String, String> properties(String prefix) {
        Map<String, String> found = new HashMap<>();
        properties.stringPropertyNames().stream().filter(key -> key.startsWith(prefix))
                .forEach(key -> found.put(key.substring(prefix.length()), properties.getProperty(key)));
        return found;
    }

    /** Returns all blocks that a bundle with this manifest needs or may use, and what those need. */
    Set<Block> closure(Manifest manifest) {
        Set<Block> taken = new LinkedHashSet<>(needed(manifest, true));
        List<Block> left = new ArrayList<>(taken);
        while (!left.isEmpty()) {
            for (Block block : needed(left.remove(left.size() - 1).manifest(), false)) {
                if (taken.add(block)) {
                    left.add(block);
                }
            }
        }
        return taken;
    }

    private Set<Block> needed(Manifest manifest, boolean withOptional) {
        Set<Block> needed = new LinkedHashSet<>();
        for (Header.Clause clause : Header.parse(manifest, "Import-Package")) {
            if (withOptional || !"optional".equals(clause.directives().get("resolution"))) {
                clause.names().forEach(name -> blocks.values().stream()
                        .filter(block -> exports(block, name, clause)).findFirst().ifPresent(needed::add));
            }
        }
        for (Header.Clause clause : Header.parse(manifest, "Require-Capability")) {
            if (!"optional".equals(clause.directives().get("resolution"))) {
                blocks.values().stream().filter(block -> provides(block, clause)).findFirst().ifPresent(needed::add);
            }
        }
        properties("header.").forEach((header, names) -> {
            if (manifest.getMainAttributes().getValue(header) != null) {
                needed.addAll(named(names));
            }
        });
        String name = manifest.getMainAttributes().getValue("Bundle-SymbolicName");
        new ArrayList<>(needed).forEach(block -> needed.addAll(with(block.name())));
        needed.addAll(with(name));
        return needed;
    }

    private Collection<Block> with(String name) {
        return named(properties.getProperty("with." + name, ""));
    }

    private List<Block> named(String names) {
        return Stream.of(names.split(",")).map(String::trim).filter(name -> !name.isEmpty()).map(blocks::get).toList();
    }

    private static boolean exports(Block block, String name, Header.Clause wanted) {
        VersionRange range = new VersionRange(wanted.attributes().getOrDefault("version", "0"));
        return block.packages().stream().anyMatch(clause -> clause.names().contains(name)
                && range.includes(Version.parseVersion(clause.attributes().get("version"))));
    }

    private static boolean provides(Block block, Header.Clause wanted) {
        return block.capabilities().stream().anyMatch(clause -> clause.names().equals(wanted.names())
                && matches(wanted.directives().get("filter"), clause.typed()));
    }

    private static boolean matches(String filter, Map<String, Object> attributes) {
        try {
            return filter == null || FrameworkUtil.createFilter(filter).matches(attributes);
        } catch (InvalidSyntaxException broken) {
            throw new IllegalArgumentException(filter, broken);
        }
    }
}
