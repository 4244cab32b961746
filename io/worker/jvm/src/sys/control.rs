// SPDX-License-Identifier: Apache-2.0
//! Control messages of bundles: the natives of `org.netserv.host.ControlNative`. None waits.

use std::sync::Arc;

use jni_sys::{JNIEnv, jbyteArray, jclass, jlong};
use netserv_model::control::{ControlMessage, MODULE_NOTIFY_BYTES_MAX};
use netserv_model::limits::TOPIC_CHARS_MAX;
use netserv_worker_base::clock;
use netserv_worker_base::error::HostError;
use netserv_worker_base::shared::control::{ControlPort, layout};

use super::call::{Bytes, Text, answer, call, natives};
use super::env::{Env, Thrown};
use super::natives::{method, outbox};
use super::state;
use crate::handles::Handles;
use crate::outbox::Outbox;

static PORTS: Handles<ControlPort> = Handles::new();

/// Keeps the port of a module that is about to be loaded, with the messages from before, until Java closes it. Returns its
/// number; 0, which is no port's, if there are too many.
pub fn open(kept: Vec<ControlMessage>) -> i64 {
    PORTS.keep(ControlPort::new(kept, None)).unwrap_or(0)
}

/// Returns a port; nothing once its module is gone.
pub fn port(number: i64) -> Option<Arc<ControlPort>> {
    PORTS.get(number)
}

natives! { c"org/netserv/host/ControlNative";
    close = c"close", c"(J)V", (env, port: jlong) -> () {
        drop(PORTS.release(port));
        state::forget(port);
        Ok(())
    }
    ask = c"ask", c"(J)V", (env, port: jlong) -> () {
        if let Some(port) = PORTS.get(port) {
            port.open_for_server(false, true);
        }
        Ok(())
    }
    listen = c"listen", c"(J)V", (env, port: jlong) -> () {
        if let Some(port) = PORTS.get(port) {
            port.open_for_packets();
        }
        Ok(())
    }
    receive = c"receive", c"(J)[B", (env, port: jlong) -> jbyteArray {
        let message = PORTS.get(port).and_then(|port| port.receive_for_packets(|message| (true, layout(message))));
        answer(env, message.as_deref())
    }
    last = c"last", c"(JLjava/lang/String;)[B", (env, port: jlong, topic: Text) -> jbyteArray {
        // One unit more than a topic has, so that none is cut to one that is.
        let topic = topic.get(env, TOPIC_CHARS_MAX + 1);
        let message = PORTS.get(port).and_then(|port| port.last(&topic));
        answer(env, message.map(|message| layout(&message)).as_deref())
    }
    notify = c"notify", c"(JLjava/lang/String;[B)V", (env, port: jlong, topic: Text, body: Bytes) -> () {
        let topic = topic.get(env, TOPIC_CHARS_MAX + 1);
        let body = body.whole(env, MODULE_NOTIFY_BYTES_MAX)?;
        let port = PORTS.get(port).ok_or(HostError::Quota)?;
        let now = outbox().map_or_else(clock::monotonic, Outbox::now);
        port.notify(now, &topic, &body)?;
        if let Some(outbox) = outbox() {
            outbox.wake();
        }
        Ok(())
    }
}
