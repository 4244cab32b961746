// SPDX-License-Identifier: Apache-2.0
package org.netserv.block;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import javax.tools.Diagnostic;
import javax.tools.DiagnosticCollector;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The code in the documentation of the building blocks compiles. */
class SnippetsTest {
    private static final Path SOURCES = Path.of("src/main/java/org/netserv/block");
    private static final Pattern SNIPPET = Pattern.compile(" \\* <pre>\\{@code\n(.*?) \\* }</pre>", Pattern.DOTALL);
    /** What the code supposes to be there. */
    private static final String FRAME = """
            import static java.nio.charset.StandardCharsets.UTF_8;
            import java.io.InputStream;
            import java.io.OutputStream;
            import java.net.InetAddress;
            import java.net.URI;
            import java.net.http.HttpRequest;
            import java.net.http.HttpResponse;
            import java.nio.ByteBuffer;
            import java.time.Duration;
            import java.util.HexFormat;
            import java.util.List;
            import java.util.concurrent.Executor;
            import org.netserv.block.*;
            import org.netserv.block.Control.Message;
            import org.netserv.module.ModuleContext;
            import org.netserv.packet.*;

            abstract class Snippet {
                interface Reference<S> { }
                interface Context {
                    <S> Reference<S> getServiceReference(Class<S> type);
                    <S> S getService(Reference<S> reference);
                }
                Context context;
                ModuleContext module;
                Log log;
                PacketView packet;
                IpView ip;
                Counter counter;
                InputStream upstream;
                OutputStream client;
                Executor reader;
                byte[] marker, text, tag;
                long seen;
                int oneIn;
                abstract void send(InputStream stream);
                void run(%s) throws Exception {
            %s
                }
            }
            """;

    @TempDir
    private Path classes;

    @Test
    void codeInTheDocumentationCompiles() throws IOException {
        List<String> wrong = new ArrayList<>();
        int snippets = 0;
        try (Stream<Path> files = Files.list(SOURCES)) {
            for (Path file : files.sorted().toList()) {
                Matcher found = SNIPPET.matcher(Files.readString(file));
                if (found.find()) {
                    snippets++;
                    wrong.addAll(errors(file.getFileName().toString(), found.group(1)));
                }
            }
        }
        assertTrue(snippets >= 15, snippets + " snippets");
        assertEquals(List.of(), wrong);
    }

    @Test
    void codeThatDoesNotCompileIsFound() {
        assertEquals(1, errors("Counter.java", " * counter.sub(1);\n").size());
    }

    private List<String> errors(String name, String lines) {
        String code = lines.replaceAll("(?m)^ \\* ?", "");
        String parameters = name.equals("Crypto.java") ? "byte[] message" : "";
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        DiagnosticCollector<JavaFileObject> said = new DiagnosticCollector<>();
        List<String> options = List.of("-proc:none", "-d", classes.toString(), "-cp", "target/classes");
        compiler.getTask(null, null, said, options, null, List.of(new Source(FRAME.formatted(parameters, code)))).call();
        return said.getDiagnostics().stream()
                .filter(one -> one.getKind() == Diagnostic.Kind.ERROR)
                .map(one -> name + ": " + one.getMessage(null)).toList();
    }

    /** A source in memory. */
    private static final class Source extends SimpleJavaFileObject {
        private final String text;

        Source(String text) {
            super(URI.create("string:///Snippet.java"), Kind.SOURCE);
            this.text = text;
        }

        @Override
        public CharSequence getCharContent(boolean ignoreEncodingErrors) {
            return text;
        }
    }
}
