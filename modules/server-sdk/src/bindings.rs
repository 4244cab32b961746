// SPDX-License-Identifier: Apache-2.0
//! What `wit-bindgen` makes of `wit/`.

/// Everything that a module may import.
pub mod imports {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package netserv:sdk-imports;
            world imports {
                include netserv:module/blocks@1.0.0;
                include wasi:cli/imports@0.2.12;
                include wasi:http/imports@0.2.12;
                import netserv:http/hand-over@1.0.0;
                import netserv:http/hits@1.1.0;
                import netserv:http/counted-hits@1.2.0;
                import netserv:http/forwarding@1.3.0;
                import netserv:tcp/control@1.1.0;
                import netserv:udp/sockets@1.0.0;
            }",
        generate_all,
    });
}

/// The export of a module that answers HTTP requests.
pub mod http {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package netserv:sdk-http;
            world http { export wasi:http/incoming-handler@0.2.12; }",
        with: {
            "wasi:http/types@0.2.12": super::imports::wasi::http::types,
            "wasi:io/error@0.2.12": super::imports::wasi::io::error,
            "wasi:io/poll@0.2.12": super::imports::wasi::io::poll,
            "wasi:io/streams@0.2.12": super::imports::wasi::io::streams,
            "wasi:clocks/monotonic-clock@0.2.12": super::imports::wasi::clocks::monotonic_clock,
        },
        generate_all,
        pub_export_macro: true,
        export_macro_name: "export_http",
        default_bindings_module: "netserv_server_sdk::bindings::http",
    });
}

/// The export of a program, alone or beside what answers requests.
pub mod run {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package netserv:sdk-run;
            world run { export wasi:cli/run@0.2.12; }",
        pub_export_macro: true,
        export_macro_name: "export_run",
        default_bindings_module: "netserv_server_sdk::bindings::run",
    });
}

/// The export of a module that handles TCP connections.
pub mod tcp {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package netserv:sdk-tcp;
            world tcp { export netserv:tcp/handler@1.1.0; export netserv:tcp/hand-over@1.1.0; }",
        with: { "netserv:tcp/types@1.1.0": super::imports::netserv::tcp1_1_0::types },
        pub_export_macro: true,
        export_macro_name: "export_tcp",
        default_bindings_module: "netserv_server_sdk::bindings::tcp",
    });
}

/// The export of a module that carries its state to other nodes.
pub mod state {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package netserv:sdk-state;
            world state { export netserv:state/carrier@1.0.0; }",
        pub_export_macro: true,
        export_macro_name: "export_state",
        default_bindings_module: "netserv_server_sdk::bindings::state",
    });
}

/// The import of a module that stands before another one of its service; what it exports is as in [`http`].
pub mod middleware {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package netserv:sdk-middleware;
            world middleware { import wasi:http/incoming-handler@0.2.12; }",
        with: {
            "wasi:http/types@0.2.12": super::imports::wasi::http::types,
            "wasi:io/error@0.2.12": super::imports::wasi::io::error,
            "wasi:io/poll@0.2.12": super::imports::wasi::io::poll,
            "wasi:io/streams@0.2.12": super::imports::wasi::io::streams,
            "wasi:clocks/monotonic-clock@0.2.12": super::imports::wasi::clocks::monotonic_clock,
        },
        generate_all,
    });
}
