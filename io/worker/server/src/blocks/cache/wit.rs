// SPDX-License-Identifier: Apache-2.0
//! The interfaces of `netserv:cache`, each for itself: they name other things.

mod bindings {
    wasmtime::component::bindgen!({
        path: [
            "../../../wit/deps/wasi-io",
            "../../../wit/deps/netserv-cache-1.1",
            "../../../wit/deps/netserv-cache-1.2",
            "../../../wit/deps/netserv-cache-1.3",
        ],
        inline: "package netserv:host-cache; world host {
            import netserv:cache/entries@1.1.0;
            import netserv:cache/unread@1.2.0;
            import netserv:cache/read@1.3.0;
        }",
        imports: {
            "netserv:cache/entries.stat": async | trappable,
            "netserv:cache/entries.get": async | trappable,
            "netserv:cache/entries.open-or-join": async | trappable,
            "netserv:cache/entries.put": async | trappable,
            "netserv:cache/entries.update": async | trappable,
            "netserv:cache/entries.remove": async | trappable,
            "netserv:cache/entries.list": async | trappable,
            "netserv:cache/entries.purge": async | trappable,
            "netserv:cache/entries.[static]writer.finish": async | trappable,
            "netserv:cache/read.update": async | trappable,
            default: trappable,
        },
        require_store_data_send: true,
        with: {
            "wasi:io": wasmtime_wasi::p2::bindings::io,
            "netserv:cache/entries.writer": crate::blocks::cache::sink::Writing,
            "netserv:cache/entries.reader": crate::blocks::cache::body::Reading,
        },
    });
}

/// What modules use that were built before 1.1.0.
pub(super) mod first {
    mod bindings {
        wasmtime::component::bindgen!({
            path: ["../../../wit/deps/wasi-io", "../../../wit/deps/netserv-cache"],
            inline: "package netserv:host-cache-first; world host { import netserv:cache/store@1.0.0; }",
            imports: {
                "netserv:cache/store.stat": async | trappable,
                "netserv:cache/store.get": async | trappable,
                "netserv:cache/store.put": async | trappable,
                "netserv:cache/store.remove": async | trappable,
                "netserv:cache/store.[static]writer.finish": async | trappable,
                default: trappable,
            },
            require_store_data_send: true,
            with: {
                "wasi:io": wasmtime_wasi::p2::bindings::io,
                "netserv:cache/store.writer": crate::blocks::cache::sink::Writing,
            },
        });
    }

    pub(in crate::blocks::cache) use bindings::netserv::cache::store;
}

pub(super) use bindings::netserv::cache1_1_0::entries;
pub(super) use bindings::netserv::cache1_2_0::unread;
pub(super) use bindings::netserv::cache1_3_0::read;
