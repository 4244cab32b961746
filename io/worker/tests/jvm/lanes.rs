// SPDX-License-Identifier: Apache-2.0
//! One JVM that serves several lanes of its node.

use netserv_wire::container::ring::{Answer, HOST_SLOTS};

use crate::support::Worker;

#[test]
fn each_lane_has_its_own_packets_back() {
    let mut worker = Worker::start();
    let mut lanes: Vec<_> = (1..4).map(|_| worker.node.add_lane()).collect();
    worker.load(1, "adder");
    for lane in &mut lanes {
        for _ in 0..2 {
            // The other is lane 0.
            let answer = worker.node.round(1 << 1, &[5; 64]);
            assert_eq!((answer.answer, answer.module, answer.bytes[0]), (Answer::Modified, Some(1), 6));
            worker.node.exchange(lane);
        }
    }
    let packets = vec![&[9_u8; 100][..]; HOST_SLOTS];
    for lane in &mut lanes {
        worker.node.exchange(lane);
        worker.node.push(1 << 1, &packets);
        worker.node.exchange(lane);
    }
    for lane in &mut lanes {
        worker.node.exchange(lane);
        let answers = worker.node.answers(HOST_SLOTS, &mut Vec::new());
        assert!(answers.iter().enumerate().all(|(n, one)| one.cookie == n as u64 && one.bytes[0] == 10));
        worker.node.exchange(lane);
    }
}
