// SPDX-License-Identifier: Apache-2.0
package org.netserv.host;

import java.nio.file.Files;
import java.nio.file.Path;

/** A worker in a process of its own, with a module that ends it. Prints what the node is told. */
final class ExitMain {
    private ExitMain() {
    }

    public static void main(String[] arguments) throws Exception {
        Natives.load();
        FakeNative node = new FakeNative();
        Ring ring = new Ring();
        Path folder = Path.of(arguments[0]);
        Host host = new Host(node, ring.buffers(), new Host.Folders(folder.resolve("none").toFile(),
                folder.toFile(), folder.resolve("none").toFile()), new Restart(node));
        host.open();
        Path old = Files.copy(folder.resolve("exit.bundle"), folder.resolve("old.jar"));
        host.load(4, "example.org/exit", "0.9.0", old.toString(), new String[] {"how", "not"}, Worker.LIMITS, 1,
                Worker.BLOCKS, 0);
        Path jar = Files.copy(folder.resolve("exit.bundle"), folder.resolve("exit.jar"));
        host.load(5, "example.org/exit", "1.0.0", jar.toString(), new String[] {"how", arguments[1]}, Worker.LIMITS, 1,
                Worker.BLOCKS, 0);
        for (boolean isLoaded = false; ; ) {
            node.awaitWake(20);
            host.idle(node.now());
            for (FakeNative.Event event = node.events.poll(); event != null; event = node.events.poll()) {
                System.out.println(event.slot() + " " + event.kind() + " " + event.detail());
                isLoaded |= event.slot() == 5 && event.kind().equals("loaded");
            }
            System.out.flush();
            if (isLoaded) {
                ring.put(0, 0, DispatcherTest.filled(20, 0), 32);
                host.process(1);
            }
        }
    }
}
