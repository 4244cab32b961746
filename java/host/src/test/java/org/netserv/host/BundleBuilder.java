// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.jar.JarEntry;
import java.util.jar.JarOutputStream;
import javax.tools.FileObject;
import javax.tools.ForwardingJavaFileManager;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileManager;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;

/** Makes bundles out of source text. */
final class BundleBuilder {
    static final String API = "org.osgi.framework,org.netserv.packet,org.netserv.module,org.netserv.block";
    private static final String IMPORTS = """
            import java.util.*;
            import java.time.Duration;
            import org.osgi.framework.*;
            import org.netserv.packet.*;
            import org.netserv.module.*;
            import org.netserv.block.*;
            """;
    private static final Map<String, Map<String, byte[]>> COMPILED = new ConcurrentHashMap<>();

    private final Map<String, String> headers = new LinkedHashMap<>();
    private final Map<String, byte[]> entries = new LinkedHashMap<>();

    /** Starts a bundle that imports the API. */
    BundleBuilder(String symbolicName, String version) {
        headers.put("Manifest-Version", "1.0");
        headers.put("Bundle-ManifestVersion", "2");
        headers.put("Bundle-SymbolicName", symbolicName);
        headers.put("Bundle-Version", version);
        headers.put("Import-Package", API);
    }

    /** Makes a bundle whose activator has these members; {@code context} is set before {@code begin} is called. */
    static BundleBuilder active(String symbolicName, String version, String members) {
        String body = """
                public class Activator implements BundleActivator {
                    BundleContext context;
                    ModuleContext module;
                    public void start(BundleContext context) throws Exception {
                        this.context = context;
                        module = context.getService(context.getServiceReference(ModuleContext.class));
                        begin();
                    }
                    public void stop(BundleContext context) throws Exception {
                        end();
                    }
                """ + (members.contains("void end()") ? "" : "void end() { }\n") + members + "\n}\n";
        return new BundleBuilder(symbolicName, version).header("Bundle-Activator", "test.Activator")
                .source("test.Activator", body);
    }

    BundleBuilder header(String name, String value) {
        if (value == null) {
            headers.remove(name);
        } else {
            headers.put(name, value);
        }
        return this;
    }

    BundleBuilder entry(String name, byte[] bytes) {
        entries.put(name, bytes);
        return this;
    }

    /** Compiles a class, and puts it in. */
    BundleBuilder source(String className, String body) {
        String name = className.substring(0, className.lastIndexOf('.'));
        String source = "package " + name + ";\n" + IMPORTS + body;
        entries.putAll(COMPILED.computeIfAbsent(source, text -> compile(className, text)));
        return this;
    }

    Map<String, byte[]> entries() {
        return entries;
    }

    /** Writes the jar. */
    Path write(Path jar) throws IOException {
        StringBuilder manifest = new StringBuilder();
        headers.forEach((name, value) -> manifest.append(name).append(": ")
                .append(value.replaceAll("(.{60})", "$1\n ")).append("\n"));
        return write(jar, manifest.append("\n").toString());
    }

    /** Writes the jar with another manifest. */
    Path write(Path jar, String manifest) throws IOException {
        try (OutputStream file = Files.newOutputStream(jar); JarOutputStream out = new JarOutputStream(file)) {
            if (manifest != null) {
                out.putNextEntry(new JarEntry("META-INF/MANIFEST.MF"));
                out.write(manifest.getBytes(StandardCharsets.UTF_8));
            }
            for (Map.Entry<String, byte[]> entry : entries.entrySet()) {
                out.putNextEntry(new JarEntry(entry.getKey()));
                out.write(entry.getValue());
            }
        }
        return jar;
    }

    private static Map<String, byte[]> compile(String className, String source) {
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        StandardJavaFileManager standard = compiler.getStandardFileManager(null, null, null);
        Map<String, ByteArrayOutputStream> classes = new LinkedHashMap<>();
        JavaFileManager manager = new ForwardingJavaFileManager<JavaFileManager>(standard) {
            @Override
            public JavaFileObject getJavaFileForOutput(
                    Location location, String name, JavaFileObject.Kind kind, FileObject sibling) {
                ByteArrayOutputStream bytes = new ByteArrayOutputStream();
                classes.put(name.replace('.', '/') + ".class", bytes);
                return new SimpleJavaFileObject(URI.create("memory:///" + name.replace('.', '/')), kind) {
                    @Override
                    public OutputStream openOutputStream() {
                        return bytes;
                    }
                };
            }
        };
        URI uri = URI.create("memory:///" + className.replace('.', '/') + ".java");
        JavaFileObject file = new SimpleJavaFileObject(uri, JavaFileObject.Kind.SOURCE) {
            @Override
            public CharSequence getCharContent(boolean ignoreEncodingErrors) {
                return source;
            }
        };
        List<String> problems = new ArrayList<>();
        boolean compiled = compiler.getTask(null, manager, diagnostic -> problems.add(diagnostic.toString()),
                List.of("--release", "17", "-nowarn", "-proc:none", "-classpath",
                        System.getProperty("java.class.path")),
                null, List.of(file)).call();
        if (!compiled) {
            throw new IllegalArgumentException(problems + "\n" + source);
        }
        Map<String, byte[]> result = new LinkedHashMap<>();
        classes.forEach((name, bytes) -> result.put(name, bytes.toByteArray()));
        return result;
    }
}
