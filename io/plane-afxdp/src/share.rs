// SPDX-License-Identifier: Apache-2.0
//! Which receive queues are those of a lane: of each device the queues q with q % lanes == lane, as `bpf/common.h` has it.

use std::collections::BTreeMap;

use super::plane::Served;

/// Which queues are ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    pub lane: usize,
    pub lanes: usize,
}

impl Share {
    /// Returns our queues of a device that can have so many.
    pub fn queues(self, most: usize) -> impl Iterator<Item = usize> {
        (self.lane..most).step_by(self.lanes)
    }

    /// Returns for how many sockets there is to be memory, ours and those of all lanes, with devices that can have so many
    /// queues.
    pub fn planned_sockets(self, devices: &BTreeMap<u32, u32>) -> (usize, usize) {
        let planned = |share: Share| {
            let queues = devices.values().map(|queues| usize::try_from(*queues).unwrap_or(1));
            queues.map(|queues| share.planned(queues)).sum::<usize>() + SPARE_SOCKETS.div_ceil(self.lanes)
        };
        (planned(self), (0..self.lanes).map(|lane| planned(Share { lane, ..self })).sum())
    }

    /// Returns for how many of our queues of a device that can have so many there is to be memory.
    fn planned(self, most: usize) -> usize {
        self.queues(most).take(PLANNED_QUEUES_MAX.div_ceil(self.lanes)).count()
    }

    /// Returns the place of the socket of one of our queues in the program's map.
    pub fn place(self, served: &Served, number: usize) -> u16 {
        let place = served.places.start + self.lane + number * self.lanes;
        u16::try_from(place).expect("there are few sockets")
    }
}

/// Queues of one device that the memory is made for; with more, each has fewer frames.
const PLANNED_QUEUES_MAX: usize = 4;
/// Queues that may come later without making the rings of the others shorter.
const SPARE_SOCKETS: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    use crate::limits;

    #[test]
    fn every_queue_is_in_one_lane() {
        for lanes in 1..=limits::LANES_MAX {
            let mut all: Vec<usize> =
                (0..lanes).flat_map(|lane| Share { lane, lanes }.queues(limits::QUEUES_MAX)).collect();
            all.sort_unstable();
            assert_eq!(all, (0..limits::QUEUES_MAX).collect::<Vec<_>>());
            assert_eq!(Share { lane: lanes - 1, lanes }.queues(lanes - 1).count(), 0);
        }
    }

    #[test]
    fn lanes_plan_for_as_many_queues_as_one_would_and_for_one_each() {
        let planned = |lanes, queues| (0..lanes).map(|lane| Share { lane, lanes }.planned(queues)).collect::<Vec<_>>();
        assert_eq!([planned(1, 1), planned(1, 4), planned(1, 64)], [[1], [4], [4]]);
        assert_eq!([planned(2, 1), planned(2, 4), planned(2, 64)], [[1, 0], [2, 2], [2, 2]]);
        assert_eq!(planned(8, 64), [1; 8]);
        // One device with four queues and three with one: the first lane has more to do with.
        let devices = BTreeMap::from([(1, 4), (2, 1), (3, 1), (4, 1)]);
        let sockets = |lane, lanes| Share { lane, lanes }.planned_sockets(&devices);
        assert_eq!([sockets(0, 1), sockets(0, 4), sockets(3, 4)], [(9, 9), (5, 11), (2, 11)]);
    }
}
