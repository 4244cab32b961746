// SPDX-License-Identifier: Apache-2.0
// Made from wit/ by `./dev bindings`.

/// What connections are.
#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
pub mod types {
	#[used]
	#[doc(hidden)]
	static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
	use super::super::super::_rt;
	/// Names a connection; no number comes twice in the life of an instance.
	pub type Connection = u64;
	/// One end of a connection.
	#[repr(u8)]
	#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
	pub enum Side {
		/// Who opened it. There is none for a connection that the module opened.
		Client,
		/// Who it was opened to. There is none for a connection to the module's own address, nor for one that it serves.
		Server,
	}
	impl ::core::fmt::Debug for Side {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			match self {
				Side::Client => f.debug_tuple("Side::Client").finish(),
				Side::Server => f.debug_tuple("Side::Server").finish(),
			}
		}
	}
	impl Side {
		#[doc(hidden)]
		pub unsafe fn _lift(val: u8) -> Side {
			if !cfg!(debug_assertions) {
				return unsafe { ::core::mem::transmute(val) };
			}
			match val {
				0 => Side::Client,
				1 => Side::Server,
				_ => panic!("invalid enum discriminant"),
			}
		}
	}
	/// An address with its port.
	#[derive(Clone)]
	pub struct Address {
		pub ip: _rt::String,
		pub port: u16,
	}
	impl ::core::fmt::Debug for Address {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			f.debug_struct("Address")
				.field("ip", &self.ip)
				.field("port", &self.port)
				.finish()
		}
	}
	/// Between whom a connection is.
	#[derive(Clone)]
	pub struct Flow {
		pub client: Address,
		pub server: Address,
		/// Whether it was taken over on its way, and not opened to the module.
		pub intercepted: bool,
	}
	impl ::core::fmt::Debug for Flow {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			f.debug_struct("Flow")
				.field("client", &self.client)
				.field("server", &self.server)
				.field("intercepted", &self.intercepted)
				.finish()
		}
	}
	/// What to do with a new connection.
	#[repr(u8)]
	#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
	pub enum Decision {
		/// Shows its bytes to the module.
		Accept,
		/// Lets it go on without the module.
		Splice,
		/// Resets it.
		Refuse,
		/// Shows its bytes to the module, which answers them itself: the server of an intercepted one is never connected
		/// to. A connection to the module's own address is served by `accept` too.
		Serve,
	}
	impl ::core::fmt::Debug for Decision {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			match self {
				Decision::Accept => f.debug_tuple("Decision::Accept").finish(),
				Decision::Splice => f.debug_tuple("Decision::Splice").finish(),
				Decision::Refuse => f.debug_tuple("Decision::Refuse").finish(),
				Decision::Serve => f.debug_tuple("Decision::Serve").finish(),
			}
		}
	}
	impl Decision {
		#[doc(hidden)]
		pub unsafe fn _lift(val: u8) -> Decision {
			if !cfg!(debug_assertions) {
				return unsafe { ::core::mem::transmute(val) };
			}
			match val {
				0 => Decision::Accept,
				1 => Decision::Splice,
				2 => Decision::Refuse,
				3 => Decision::Serve,
				_ => panic!("invalid enum discriminant"),
			}
		}
	}
	/// What to do with bytes.
	#[derive(Clone)]
	pub enum Action {
		/// They go on as they came; to nowhere without another side.
		Pass,
		/// These go on in their place, at most 1 MiB.
		Replace(_rt::Vec<u8>),
		/// They go on, and all later ones of both sides, without the module.
		Splice,
		/// Both sides are closed when what was sent before has gone.
		Close,
	}
	impl ::core::fmt::Debug for Action {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			match self {
				Action::Pass => f.debug_tuple("Action::Pass").finish(),
				Action::Replace(e) => f.debug_tuple("Action::Replace").field(e).finish(),
				Action::Splice => f.debug_tuple("Action::Splice").finish(),
				Action::Close => f.debug_tuple("Action::Close").finish(),
			}
		}
	}
}
/// What a module can do beyond answering.
#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
pub mod control {
	#[used]
	#[doc(hidden)]
	static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
	use super::super::super::_rt;
	pub type Pollable = super::super::super::wasi::io::poll::Pollable;
	pub type Connection = super::super::super::netserv::tcp1_1_0::types::Connection;
	pub type Side = super::super::super::netserv::tcp1_1_0::types::Side;
	pub type Address = super::super::super::netserv::tcp1_1_0::types::Address;
	/// Why nothing was done.
	#[repr(u8)]
	#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
	pub enum Error {
		/// There is no such connection or side.
		NotFound,
		/// The side has not taken what was sent before. 1 MiB may wait for a side; of what all sides of the module have
		/// waiting beyond 12 MiB, each has its share of what is left to 24 MiB, and 2 KiB always. `room` tells when to try
		/// again.
		WouldBlock,
		/// A limit of the module: more than 1 MiB at once, 64 timers, 64 tokens, or its `connections`.
		Quota,
		/// The module may not connect there: none of its user's `connect` filters names the address.
		NotPermitted,
		/// It is no address of IPv4 or IPv6, or has port 0.
		Invalid,
	}
	impl Error {
		pub fn name(&self) -> &'static str {
			match self {
				Error::NotFound => "not-found",
				Error::WouldBlock => "would-block",
				Error::Quota => "quota",
				Error::NotPermitted => "not-permitted",
				Error::Invalid => "invalid",
			}
		}
		pub fn message(&self) -> &'static str {
			match self {
				Error::NotFound => "There is no such connection or side.",
				Error::WouldBlock => {
					"The side has not taken what was sent before. 1 MiB may wait for a side; of what all sides of the module have
			  waiting beyond 12 MiB, each has its share of what is left to 24 MiB, and 2 KiB always. `room` tells when to try
			  again."
				}
				Error::Quota => {
					"A limit of the module: more than 1 MiB at once, 64 timers, 64 tokens, or its `connections`."
				}
				Error::NotPermitted => {
					"The module may not connect there: none of its user's `connect` filters names the address."
				}
				Error::Invalid => "It is no address of IPv4 or IPv6, or has port 0.",
			}
		}
	}
	impl ::core::fmt::Debug for Error {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			f.debug_struct("Error")
				.field("code", &(*self as i32))
				.field("name", &self.name())
				.field("message", &self.message())
				.finish()
		}
	}
	impl ::core::fmt::Display for Error {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			write!(f, "{} (error {})", self.name(), * self as i32)
		}
	}
	impl ::core::error::Error for Error {}
	impl Error {
		#[doc(hidden)]
		pub unsafe fn _lift(val: u8) -> Error {
			if !cfg!(debug_assertions) {
				return unsafe { ::core::mem::transmute(val) };
			}
			match val {
				0 => Error::NotFound,
				1 => Error::WouldBlock,
				2 => Error::Quota,
				3 => Error::NotPermitted,
				4 => Error::Invalid,
				_ => panic!("invalid enum discriminant"),
			}
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Sends bytes to a side: all of them, or none if it fails.
	#[allow(async_fn_in_trait)]
	pub fn send(id: Connection, to: Side, bytes: &[u8]) -> Result<(), Error> {
		unsafe {
			#[repr(align(1))]
			struct RetArea([::core::mem::MaybeUninit<u8>; 2]);
			let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 2]);
			let vec0 = bytes;
			let ptr0 = vec0.as_ptr().cast::<u8>();
			let len0 = vec0.len();
			let ptr1 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:tcp/control@1.1.0")]
			unsafe extern "C" {
				#[link_name = "send"]
				fn wit_import2(_: i64, _: i32, _: *mut u8, _: usize, _: *mut u8);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import2(
				_: i64,
				_: i32,
				_: *mut u8,
				_: usize,
				_: *mut u8,
			) {
				unreachable!()
			}
			wit_import2(_rt::as_i64(id), to.clone() as i32, ptr0.cast_mut(), len0, ptr1);
			let l3 = i32::from(*ptr1.add(0).cast::<u8>());
			let result5 = match l3 {
				0 => {
					let e = ();
					Ok(e)
				}
				1 => {
					let e = {
						let l4 = i32::from(*ptr1.add(1).cast::<u8>());
						Error::_lift(l4 as u8)
					};
					Err(e)
				}
				_ => _rt::invalid_enum_discriminant(),
			};
			result5
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Returns how many bytes wait in the node to be sent to a side, not counting what the kernel has of them.
	#[allow(async_fn_in_trait)]
	pub fn queued(id: Connection, to: Side) -> Result<u64, Error> {
		unsafe {
			#[repr(align(8))]
			struct RetArea([::core::mem::MaybeUninit<u8>; 16]);
			let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 16]);
			let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:tcp/control@1.1.0")]
			unsafe extern "C" {
				#[link_name = "queued"]
				fn wit_import1(_: i64, _: i32, _: *mut u8);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import1(_: i64, _: i32, _: *mut u8) {
				unreachable!()
			}
			wit_import1(_rt::as_i64(id), to.clone() as i32, ptr0);
			let l2 = i32::from(*ptr0.add(0).cast::<u8>());
			let result5 = match l2 {
				0 => {
					let e = {
						let l3 = *ptr0.add(8).cast::<i64>();
						l3 as u64
					};
					Ok(e)
				}
				1 => {
					let e = {
						let l4 = i32::from(*ptr0.add(8).cast::<u8>());
						Error::_lift(l4 as u8)
					};
					Err(e)
				}
				_ => _rt::invalid_enum_discriminant(),
			};
			result5
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Reads no more of a side until `resume`, so that it has to wait with what it sends. One call of `data` for bytes that
	/// were read before may still come. Its end is not noticed meanwhile.
	#[allow(async_fn_in_trait)]
	pub fn pause(id: Connection, source: Side) -> Result<(), Error> {
		unsafe {
			#[repr(align(1))]
			struct RetArea([::core::mem::MaybeUninit<u8>; 2]);
			let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 2]);
			let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:tcp/control@1.1.0")]
			unsafe extern "C" {
				#[link_name = "pause"]
				fn wit_import1(_: i64, _: i32, _: *mut u8);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import1(_: i64, _: i32, _: *mut u8) {
				unreachable!()
			}
			wit_import1(_rt::as_i64(id), source.clone() as i32, ptr0);
			let l2 = i32::from(*ptr0.add(0).cast::<u8>());
			let result4 = match l2 {
				0 => {
					let e = ();
					Ok(e)
				}
				1 => {
					let e = {
						let l3 = i32::from(*ptr0.add(1).cast::<u8>());
						Error::_lift(l3 as u8)
					};
					Err(e)
				}
				_ => _rt::invalid_enum_discriminant(),
			};
			result4
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Goes on to read a side.
	#[allow(async_fn_in_trait)]
	pub fn resume(id: Connection, source: Side) -> Result<(), Error> {
		unsafe {
			#[repr(align(1))]
			struct RetArea([::core::mem::MaybeUninit<u8>; 2]);
			let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 2]);
			let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:tcp/control@1.1.0")]
			unsafe extern "C" {
				#[link_name = "resume"]
				fn wit_import1(_: i64, _: i32, _: *mut u8);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import1(_: i64, _: i32, _: *mut u8) {
				unreachable!()
			}
			wit_import1(_rt::as_i64(id), source.clone() as i32, ptr0);
			let l2 = i32::from(*ptr0.add(0).cast::<u8>());
			let result4 = match l2 {
				0 => {
					let e = ();
					Ok(e)
				}
				1 => {
					let e = {
						let l3 = i32::from(*ptr0.add(1).cast::<u8>());
						Error::_lift(l3 as u8)
					};
					Err(e)
				}
				_ => _rt::invalid_enum_discriminant(),
			};
			result4
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Tells a side that no more comes.
	#[allow(async_fn_in_trait)]
	pub fn shutdown(id: Connection, to: Side) -> Result<(), Error> {
		unsafe {
			#[repr(align(1))]
			struct RetArea([::core::mem::MaybeUninit<u8>; 2]);
			let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 2]);
			let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:tcp/control@1.1.0")]
			unsafe extern "C" {
				#[link_name = "shutdown"]
				fn wit_import1(_: i64, _: i32, _: *mut u8);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import1(_: i64, _: i32, _: *mut u8) {
				unreachable!()
			}
			wit_import1(_rt::as_i64(id), to.clone() as i32, ptr0);
			let l2 = i32::from(*ptr0.add(0).cast::<u8>());
			let result4 = match l2 {
				0 => {
					let e = ();
					Ok(e)
				}
				1 => {
					let e = {
						let l3 = i32::from(*ptr0.add(1).cast::<u8>());
						Error::_lift(l3 as u8)
					};
					Err(e)
				}
				_ => _rt::invalid_enum_discriminant(),
			};
			result4
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Closes both sides when what was sent before has gone.
	#[allow(async_fn_in_trait)]
	pub fn close(id: Connection) -> Result<(), Error> {
		unsafe {
			#[repr(align(1))]
			struct RetArea([::core::mem::MaybeUninit<u8>; 2]);
			let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 2]);
			let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:tcp/control@1.1.0")]
			unsafe extern "C" {
				#[link_name = "close"]
				fn wit_import1(_: i64, _: *mut u8);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import1(_: i64, _: *mut u8) {
				unreachable!()
			}
			wit_import1(_rt::as_i64(id), ptr0);
			let l2 = i32::from(*ptr0.add(0).cast::<u8>());
			let result4 = match l2 {
				0 => {
					let e = ();
					Ok(e)
				}
				1 => {
					let e = {
						let l3 = i32::from(*ptr0.add(1).cast::<u8>());
						Error::_lift(l3 as u8)
					};
					Err(e)
				}
				_ => _rt::invalid_enum_discriminant(),
			};
			result4
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Opens a connection of the module's own, of which the module is the client: it has a `server` side only. What is sent
	/// before `opened` goes when it is there. It takes 10 s at most, and counts among the module's `connections`.
	#[allow(async_fn_in_trait)]
	pub fn open(remote: &Address) -> Result<Connection, Error> {
		unsafe {
			#[repr(align(8))]
			struct RetArea([::core::mem::MaybeUninit<u8>; 16]);
			let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 16]);
			let super::super::super::netserv::tcp1_1_0::types::Address {
				ip: ip0,
				port: port0,
			} = remote;
			let vec1 = ip0;
			let ptr1 = vec1.as_ptr().cast::<u8>();
			let len1 = vec1.len();
			let ptr2 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:tcp/control@1.1.0")]
			unsafe extern "C" {
				#[link_name = "open"]
				fn wit_import3(_: *mut u8, _: usize, _: i32, _: *mut u8);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import3(_: *mut u8, _: usize, _: i32, _: *mut u8) {
				unreachable!()
			}
			wit_import3(ptr1.cast_mut(), len1, _rt::as_i32(port0), ptr2);
			let l4 = i32::from(*ptr2.add(0).cast::<u8>());
			let result7 = match l4 {
				0 => {
					let e = {
						let l5 = *ptr2.add(8).cast::<i64>();
						l5 as u64
					};
					Ok(e)
				}
				1 => {
					let e = {
						let l6 = i32::from(*ptr2.add(8).cast::<u8>());
						Error::_lift(l6 as u8)
					};
					Err(e)
				}
				_ => _rt::invalid_enum_discriminant(),
			};
			result7
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Calls `timer` after some milliseconds, then each `period-ms` unless that is 0.
	#[allow(async_fn_in_trait)]
	pub fn set_timer(id: u32, delay_ms: u64, period_ms: u64) -> Result<(), Error> {
		unsafe {
			#[repr(align(1))]
			struct RetArea([::core::mem::MaybeUninit<u8>; 2]);
			let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 2]);
			let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:tcp/control@1.1.0")]
			unsafe extern "C" {
				#[link_name = "set-timer"]
				fn wit_import1(_: i32, _: i64, _: i64, _: *mut u8);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import1(_: i32, _: i64, _: i64, _: *mut u8) {
				unreachable!()
			}
			wit_import1(
				_rt::as_i32(&id),
				_rt::as_i64(&delay_ms),
				_rt::as_i64(&period_ms),
				ptr0,
			);
			let l2 = i32::from(*ptr0.add(0).cast::<u8>());
			let result4 = match l2 {
				0 => {
					let e = ();
					Ok(e)
				}
				1 => {
					let e = {
						let l3 = i32::from(*ptr0.add(1).cast::<u8>());
						Error::_lift(l3 as u8)
					};
					Err(e)
				}
				_ => _rt::invalid_enum_discriminant(),
			};
			result4
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Forgets a timer.
	#[allow(async_fn_in_trait)]
	pub fn cancel_timer(id: u32) -> () {
		unsafe {
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:tcp/control@1.1.0")]
			unsafe extern "C" {
				#[link_name = "cancel-timer"]
				fn wit_import0(_: i32);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import0(_: i32) {
				unreachable!()
			}
			wit_import0(_rt::as_i32(&id));
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Calls `ready` once when this is ready: a stream, the answer to an HTTP request, messages, a clock. Other connections'
	/// events come meanwhile, which wait while a call of the module blocks. What was watched with the token is forgotten.
	#[allow(async_fn_in_trait)]
	pub fn watch(what: Pollable, token: u32) -> Result<(), Error> {
		unsafe {
			#[repr(align(1))]
			struct RetArea([::core::mem::MaybeUninit<u8>; 2]);
			let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 2]);
			let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:tcp/control@1.1.0")]
			unsafe extern "C" {
				#[link_name = "watch"]
				fn wit_import1(_: i32, _: i32, _: *mut u8);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import1(_: i32, _: i32, _: *mut u8) {
				unreachable!()
			}
			wit_import1((&what).take_handle() as i32, _rt::as_i32(&token), ptr0);
			let l2 = i32::from(*ptr0.add(0).cast::<u8>());
			let result4 = match l2 {
				0 => {
					let e = ();
					Ok(e)
				}
				1 => {
					let e = {
						let l3 = i32::from(*ptr0.add(1).cast::<u8>());
						Error::_lift(l3 as u8)
					};
					Err(e)
				}
				_ => _rt::invalid_enum_discriminant(),
			};
			result4
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Forgets what is watched with a token. What it was made of may be dropped only then.
	#[allow(async_fn_in_trait)]
	pub fn unwatch(token: u32) -> () {
		unsafe {
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:tcp/control@1.1.0")]
			unsafe extern "C" {
				#[link_name = "unwatch"]
				fn wit_import0(_: i32);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import0(_: i32) {
				unreachable!()
			}
			wit_import0(_rt::as_i32(&token));
		}
	}
}
