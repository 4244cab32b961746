// SPDX-License-Identifier: Apache-2.0
//! The containers, by numbers that packets can carry.

use netserv_model::UserId;

use super::port::Port;

/// The number of a user's seat. It never becomes that of another user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SeatId(u32);

/// One seat for each user that ever had a container or a rule, in the order of their coming. Users are the operator's,
/// so they are few; a seat that stays empty costs its name.
#[derive(Default)]
pub(super) struct Seats(Vec<Seat>);

struct Seat {
    user: UserId,
    port: Option<Port>,
}

impl Seats {
    /// Returns a user's seat, and makes it if there is none.
    pub(super) fn of(&mut self, user: &UserId) -> SeatId {
        let number = self.0.iter().position(|seat| seat.user == *user).unwrap_or_else(|| {
            self.0.push(Seat { user: user.clone(), port: None });
            self.0.len() - 1
        });
        SeatId(u32::try_from(number).expect("an operator has fewer users than 32 bits count"))
    }

    /// Returns who sits there.
    pub(super) fn user(&self, seat: SeatId) -> &UserId {
        &self.0[seat.0 as usize].user
    }

    /// Returns the container that sits there.
    pub(super) fn port(&mut self, seat: SeatId) -> Option<&mut Port> {
        self.0[seat.0 as usize].port.as_mut()
    }

    /// Returns a user's container.
    pub(super) fn port_of(&mut self, user: &UserId) -> Option<&mut Port> {
        self.0.iter_mut().find(|seat| seat.user == *user)?.port.as_mut()
    }

    /// Takes a container out of its seat.
    pub(super) fn take(&mut self, seat: SeatId) -> Option<Port> {
        self.0[seat.0 as usize].port.take()
    }

    /// Puts a container into a seat.
    pub(super) fn put(&mut self, seat: SeatId, port: Port) {
        self.0[seat.0 as usize].port = Some(port);
    }

    /// Returns all seats, empty ones too.
    pub(super) fn ids(&self) -> impl Iterator<Item = SeatId> + use<> {
        (0..u32::try_from(self.0.len()).unwrap_or(u32::MAX)).map(SeatId)
    }

    /// Returns the containers.
    pub(super) fn ports(&self) -> impl Iterator<Item = &Port> {
        self.0.iter().filter_map(|seat| seat.port.as_ref())
    }

    /// Returns the containers, to be changed.
    pub(super) fn ports_mut(&mut self) -> impl Iterator<Item = &mut Port> {
        self.0.iter_mut().filter_map(|seat| seat.port.as_mut())
    }

    /// Returns the containers with their users.
    pub(super) fn users_mut(&mut self) -> impl Iterator<Item = (&UserId, &mut Port)> {
        self.0.iter_mut().filter_map(|seat| Some((&seat.user, seat.port.as_mut()?)))
    }
}
