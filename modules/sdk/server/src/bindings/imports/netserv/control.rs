// SPDX-License-Identifier: Apache-2.0
// Made from wit/ by `./dev bindings`.

/// Control messages, which the module's user sends to running modules by `TELL`, and what modules tell back.
///
/// A message has up to 4 KiB. Messages to one module are numbered, each above the one before, and come once, in order. The last one
/// of each topic, of 16 topics at most, is kept for as long as the module is installed: an instance that is loaded after a
/// restart, or as another version, begins with those, in order of their numbers. Others that nobody took are lost with the
/// instance.
#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
pub mod types {
	#[used]
	#[doc(hidden)]
	static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
	use super::super::super::_rt;
	/// One message.
	#[derive(Clone)]
	pub struct Message {
		/// What it is about: 1 to 64 visible ASCII characters.
		pub topic: _rt::String,
		/// Its number.
		pub seq: u64,
		/// The message.
		pub body: _rt::Vec<u8>,
	}
	impl ::core::fmt::Debug for Message {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			f.debug_struct("Message")
				.field("topic", &self.topic)
				.field("seq", &self.seq)
				.field("body", &self.body)
				.finish()
		}
	}
}
/// Messages as they come. Who imports this has an inbox: 64 messages or 256 KiB may wait in it, further ones are refused to their
/// sender as `inbox-full`.
#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
pub mod inbox {
	#[used]
	#[doc(hidden)]
	static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
	use super::super::super::_rt;
	pub type Message = super::super::super::netserv::control::types::Message;
	pub type Pollable = super::super::super::wasi::io::poll::Pollable;
	#[allow(unused_unsafe, clippy::all)]
	/// Takes the oldest message, if there is one. Each message is had by one instance only.
	#[allow(async_fn_in_trait)]
	pub fn receive() -> Option<Message> {
		unsafe {
			#[repr(align(8))]
			struct RetArea(
				[::core::mem::MaybeUninit<
					u8,
				>; 16 + 4 * ::core::mem::size_of::<*const u8>()],
			);
			let mut ret_area = RetArea(
				[::core::mem::MaybeUninit::uninit(); 16
					+ 4 * ::core::mem::size_of::<*const u8>()],
			);
			let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:control/inbox@1.0.0")]
			unsafe extern "C" {
				#[link_name = "receive"]
				fn wit_import1(_: *mut u8);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import1(_: *mut u8) {
				unreachable!()
			}
			wit_import1(ptr0);
			let l2 = i32::from(*ptr0.add(0).cast::<u8>());
			let result10 = match l2 {
				0 => None,
				1 => {
					let e = {
						let l3 = *ptr0.add(8).cast::<*mut u8>();
						let l4 = *ptr0
							.add(8 + 1 * ::core::mem::size_of::<*const u8>())
							.cast::<usize>();
						let len5 = l4;
						let bytes5 = _rt::Vec::from_raw_parts(l3.cast(), len5, len5);
						let l6 = *ptr0
							.add(8 + 2 * ::core::mem::size_of::<*const u8>())
							.cast::<i64>();
						let l7 = *ptr0
							.add(16 + 2 * ::core::mem::size_of::<*const u8>())
							.cast::<*mut u8>();
						let l8 = *ptr0
							.add(16 + 3 * ::core::mem::size_of::<*const u8>())
							.cast::<usize>();
						let len9 = l8;
						super::super::super::netserv::control::types::Message {
							topic: _rt::string_lift(bytes5),
							seq: l6 as u64,
							body: <_ as From<
								_rt::Vec<_>,
							>>::from(_rt::Vec::from_raw_parts(l7.cast(), len9, len9)),
						}
					};
					Some(e)
				}
				_ => _rt::invalid_enum_discriminant(),
			};
			result10
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Returns what is ready when there is a message.
	#[allow(async_fn_in_trait)]
	pub fn subscribe() -> Pollable {
		unsafe {
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:control/inbox@1.0.0")]
			unsafe extern "C" {
				#[link_name = "subscribe"]
				fn wit_import0() -> i32;
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import0() -> i32 {
				unreachable!()
			}
			let ret = wit_import0();
			super::super::super::wasi::io::poll::Pollable::from_handle(ret as u32)
		}
	}
}
/// The way back.
#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
pub mod requester {
	#[used]
	#[doc(hidden)]
	static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
	use super::super::super::_rt;
	/// Why a message was not taken.
	#[repr(u8)]
	#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
	pub enum Error {
		/// More than 5 at once, or than one in each second in the long run.
		Quota,
		/// A message of more than 1,024 bytes.
		TooLarge,
		/// No topic of 1 to 64 visible ASCII characters.
		InvalidTopic,
	}
	impl Error {
		pub fn name(&self) -> &'static str {
			match self {
				Error::Quota => "quota",
				Error::TooLarge => "too-large",
				Error::InvalidTopic => "invalid-topic",
			}
		}
		pub fn message(&self) -> &'static str {
			match self {
				Error::Quota => {
					"More than 5 at once, or than one in each second in the long run."
				}
				Error::TooLarge => "A message of more than 1,024 bytes.",
				Error::InvalidTopic => "No topic of 1 to 64 visible ASCII characters.",
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
				0 => Error::Quota,
				1 => Error::TooLarge,
				2 => Error::InvalidTopic,
				_ => panic!("invalid enum discriminant"),
			}
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Tells the requester of the module's last SETUP something, as a NOTIFY with the event `module-message`. Nothing says whether
	/// it arrives.
	#[allow(async_fn_in_trait)]
	pub fn notify(topic: &str, body: &[u8]) -> Result<(), Error> {
		unsafe {
			#[repr(align(1))]
			struct RetArea([::core::mem::MaybeUninit<u8>; 2]);
			let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 2]);
			let vec0 = topic;
			let ptr0 = vec0.as_ptr().cast::<u8>();
			let len0 = vec0.len();
			let vec1 = body;
			let ptr1 = vec1.as_ptr().cast::<u8>();
			let len1 = vec1.len();
			let ptr2 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:control/requester@1.0.0")]
			unsafe extern "C" {
				#[link_name = "notify"]
				fn wit_import3(_: *mut u8, _: usize, _: *mut u8, _: usize, _: *mut u8);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import3(
				_: *mut u8,
				_: usize,
				_: *mut u8,
				_: usize,
				_: *mut u8,
			) {
				unreachable!()
			}
			wit_import3(ptr0.cast_mut(), len0, ptr1.cast_mut(), len1, ptr2);
			let l4 = i32::from(*ptr2.add(0).cast::<u8>());
			let result6 = match l4 {
				0 => {
					let e = ();
					Ok(e)
				}
				1 => {
					let e = {
						let l5 = i32::from(*ptr2.add(1).cast::<u8>());
						Error::_lift(l5 as u8)
					};
					Err(e)
				}
				_ => _rt::invalid_enum_discriminant(),
			};
			result6
		}
	}
}
/// The last message of each topic, which every instance can read as often as it wants: what suits a module with an instance for
/// each request. Who imports this and no inbox is never full.
#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
pub mod topics {
	#[used]
	#[doc(hidden)]
	static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
	use super::super::super::_rt;
	pub type Message = super::super::super::netserv::control::types::Message;
	#[allow(unused_unsafe, clippy::all)]
	/// Returns the last message of a topic, if there was one.
	#[allow(async_fn_in_trait)]
	pub fn last(topic: &str) -> Option<Message> {
		unsafe {
			#[repr(align(8))]
			struct RetArea(
				[::core::mem::MaybeUninit<
					u8,
				>; 16 + 4 * ::core::mem::size_of::<*const u8>()],
			);
			let mut ret_area = RetArea(
				[::core::mem::MaybeUninit::uninit(); 16
					+ 4 * ::core::mem::size_of::<*const u8>()],
			);
			let vec0 = topic;
			let ptr0 = vec0.as_ptr().cast::<u8>();
			let len0 = vec0.len();
			let ptr1 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:control/topics@1.0.0")]
			unsafe extern "C" {
				#[link_name = "last"]
				fn wit_import2(_: *mut u8, _: usize, _: *mut u8);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import2(_: *mut u8, _: usize, _: *mut u8) {
				unreachable!()
			}
			wit_import2(ptr0.cast_mut(), len0, ptr1);
			let l3 = i32::from(*ptr1.add(0).cast::<u8>());
			let result11 = match l3 {
				0 => None,
				1 => {
					let e = {
						let l4 = *ptr1.add(8).cast::<*mut u8>();
						let l5 = *ptr1
							.add(8 + 1 * ::core::mem::size_of::<*const u8>())
							.cast::<usize>();
						let len6 = l5;
						let bytes6 = _rt::Vec::from_raw_parts(l4.cast(), len6, len6);
						let l7 = *ptr1
							.add(8 + 2 * ::core::mem::size_of::<*const u8>())
							.cast::<i64>();
						let l8 = *ptr1
							.add(16 + 2 * ::core::mem::size_of::<*const u8>())
							.cast::<*mut u8>();
						let l9 = *ptr1
							.add(16 + 3 * ::core::mem::size_of::<*const u8>())
							.cast::<usize>();
						let len10 = l9;
						super::super::super::netserv::control::types::Message {
							topic: _rt::string_lift(bytes6),
							seq: l7 as u64,
							body: <_ as From<
								_rt::Vec<_>,
							>>::from(_rt::Vec::from_raw_parts(l8.cast(), len10, len10)),
						}
					};
					Some(e)
				}
				_ => _rt::invalid_enum_discriminant(),
			};
			result11
		}
	}
}
