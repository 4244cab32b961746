// SPDX-License-Identifier: Apache-2.0

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.zip.CRC32;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.ToolProvider;

/** Makes the broken bundles of this folder anew: {@code java Make.java}. */
public final class Make {
    private static final String HEAD = "Manifest-Version: 1.0\nBundle-ManifestVersion: 2\n";
    private static final String NAME = HEAD + "Bundle-SymbolicName: example.org.broken\nBundle-Version: 1.0.0\n";
    private static final String ACTIVATOR = "Bundle-Activator: broken.Activator\n";
    private static final String MANIFEST = "META-INF/MANIFEST.MF";

    private Make() {
    }

    public static void main(String[] arguments) throws IOException {
        byte[] activator = activator();
        byte[] newer = activator.clone();
        // The class file's version: that of a Java that is not there yet.
        newer[6] = 0;
        newer[7] = 99;
        String[][] manifests = {
            {"missing-import", "Import-Package: com.example.missing;version=\"[1.2,2)\"\n"},
            {"wrong-version", "Import-Package: org.netserv.packet;version=\"[99,100)\"\n"},
            {"missing-capability", "Require-Capability: com.example.missing;filter:=\"(level>=3)\"\n"},
            {"missing-bundle", "Require-Bundle: com.example.missing\n"},
            {"newer-java", "Require-Capability: osgi.ee;filter:=\"(&(osgi.ee=JavaSE)(version=99))\"\n"},
            {"old-newer-java", "Bundle-RequiredExecutionEnvironment: JavaSE-99\n"},
            {"fragment", "Fragment-Host: org.netserv.samples.bad\n"},
            {"extension", "Fragment-Host: system.bundle;extension:=framework\nExport-Package: broken\n"},
            {"boot-extension", "Fragment-Host: system.bundle;extension:=bootclasspath\n"},
            {"native-code", "Bundle-NativeCode: libbad.so;osname=Solaris;processor=sparc\n"},
            {"duplicate-import", "Import-Package: org.netserv.packet,org.netserv.packet\n"},
            {"bad-header", "Import-Package: ;;version=\"\n"},
            {"exports-java", "Export-Package: java.lang\n"},
        };
        for (String[] named : manifests) {
            write(named[0], NAME + named[1], null);
        }
        write("newer-class", NAME + ACTIVATOR, newer);
        write("missing-activator", NAME + ACTIVATOR, null);
        write("damaged-class", NAME + ACTIVATOR, Arrays.copyOf(activator, activator.length / 2));
        write("no-name", HEAD, null);
        write("manifest-version-9", NAME.replace("ManifestVersion: 2", "ManifestVersion: 9"), null);
        write("bad-version", NAME.replace("1.0.0", "one"), null);
        write("malformed-manifest", "no colon here\n\u0000\u0001\u0002\n" + NAME, null);
        write("duplicate-name", NAME + "Bundle-SymbolicName: example.org.other\n", null);
        write("empty-manifest", "", null);
        Files.write(Path.of("no-jar.jar"), "no zip file\n".getBytes(StandardCharsets.UTF_8));
        Files.write(Path.of("cut.jar"), Arrays.copyOf(zip(NAME + ACTIVATOR, activator), 200));
        writeTwoManifests();
        writeBomb();
        Files.write(Path.of("no-manifest.jar"), entries(List.of("broken/Activator.class"), List.of(activator)));
    }

    private static void write(String name, String manifest, byte[] activator) throws IOException {
        Files.write(Path.of(name + ".jar"), zip(manifest, activator));
    }

    private static byte[] zip(String manifest, byte[] activator) throws IOException {
        List<String> names = new ArrayList<>(List.of(MANIFEST));
        List<byte[]> contents = new ArrayList<>(List.of(manifest.getBytes(StandardCharsets.UTF_8)));
        if (activator != null) {
            names.add("broken/Activator.class");
            contents.add(activator);
        }
        return entries(names, contents);
    }

    /** Two files of one name, of which either may be taken: the library writes none such, so one is renamed afterwards. */
    private static void writeTwoManifests() throws IOException {
        String other = NAME.replace("example.org.broken", "example.org.other");
        List<byte[]> contents = List.of(
                NAME.getBytes(StandardCharsets.UTF_8), other.getBytes(StandardCharsets.UTF_8));
        byte[] bytes = entries(List.of(MANIFEST, "META-INF/MANIFEST.MX"), contents);
        String text = new String(bytes, StandardCharsets.ISO_8859_1).replace("MANIFEST.MX", "MANIFEST.MF");
        Files.write(Path.of("two-manifests.jar"), text.getBytes(StandardCharsets.ISO_8859_1));
    }

    /** A manifest of 8 MiB in 29 KiB. */
    private static void writeBomb() throws IOException {
        byte[] line = (" " + "x".repeat(69) + "\n").getBytes(StandardCharsets.UTF_8);
        ByteArrayOutputStream manifest = new ByteArrayOutputStream();
        manifest.write((NAME + "X-Long: x\n").getBytes(StandardCharsets.UTF_8));
        while (manifest.size() < 8 << 20) {
            manifest.write(line);
        }
        Files.write(Path.of("bomb.jar"), entries(List.of(MANIFEST), List.of(manifest.toByteArray())));
    }

    private static byte[] entries(List<String> names, List<byte[]> contents) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (ZipOutputStream zip = new ZipOutputStream(bytes)) {
            for (int at = 0; at < names.size(); at++) {
                ZipEntry entry = new ZipEntry(names.get(at));
                entry.setTime(0);
                CRC32 sum = new CRC32();
                sum.update(contents.get(at));
                entry.setCrc(sum.getValue());
                zip.putNextEntry(entry);
                zip.write(contents.get(at));
            }
        }
        return bytes.toByteArray();
    }

    /** Compiles an activator that does nothing. */
    private static byte[] activator() throws IOException {
        Path folder = Files.createTempDirectory("broken");
        String[] sources = {
            "package org.osgi.framework; public interface BundleContext { }",
            "package org.osgi.framework; public interface BundleActivator {"
                    + " void start(BundleContext b) throws Exception; void stop(BundleContext b) throws Exception; }",
            "package broken; import org.osgi.framework.*; public class Activator implements BundleActivator {"
                    + " public void start(BundleContext b) { } public void stop(BundleContext b) { } }",
        };
        String[] names = {"org/osgi/framework/BundleContext", "org/osgi/framework/BundleActivator", "broken/Activator"};
        List<JavaFileObject> files = new ArrayList<>();
        for (int at = 0; at < names.length; at++) {
            files.add(new Source(names[at], sources[at]));
        }
        List<String> options = List.of("--release", "17", "-g:none", "-d", folder.toString());
        ToolProvider.getSystemJavaCompiler().getTask(null, null, null, options, null, files).call();
        return Files.readAllBytes(folder.resolve("broken/Activator.class"));
    }

    private static final class Source extends SimpleJavaFileObject {
        private final String text;

        Source(String name, String text) {
            super(URI.create("string:///" + name + ".java"), Kind.SOURCE);
            this.text = text;
        }

        @Override
        public CharSequence getCharContent(boolean ignoreEncodingErrors) {
            return text;
        }
    }
}
