// SPDX-License-Identifier: Apache-2.0
// Made from wit/ by `./dev bindings`.

/// Topics to which a module publishes, and which any number of its instances read: live pages, events, news.
///
/// A channel is of one module on one node: all its instances and both its parts share it, as do the versions that follow each other
/// in an upgrade. It is in memory: what was published is lost when the module is removed, fails, or its worker ends.
///
/// A topic keeps its last messages, up to 1 MiB of them, each counted with its key and 192 bytes more; older ones give way.
/// All modules of a container together may keep one eighth of its memory. Messages of a topic are numbered, each one above that
/// before it; a topic that is made begins with the microseconds since 1970, so that numbers of another time are not taken for
/// its own.
#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
pub mod channel {
	#[used]
	#[doc(hidden)]
	static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
	use super::super::super::_rt;
	pub type StreamError = super::super::super::wasi::io::error::Error;
	pub type InputStream = super::super::super::wasi::io::streams::InputStream;
	/// Why nothing was done.
	#[repr(u8)]
	#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
	pub enum Error {
		/// The module has 64 topics or 8,192 subscribers, or other topics keep as much memory as there is.
		Quota,
		/// A message of more than 64 KiB, or a key of more than 256 bytes.
		TooLarge,
		/// No topic of 1 to 64 visible ASCII characters.
		InvalidTopic,
		/// Messages behind that number gave way to others, or the topic never had it: subscribe to the oldest, or to the newest.
		Gone,
	}
	impl Error {
		pub fn name(&self) -> &'static str {
			match self {
				Error::Quota => "quota",
				Error::TooLarge => "too-large",
				Error::InvalidTopic => "invalid-topic",
				Error::Gone => "gone",
			}
		}
		pub fn message(&self) -> &'static str {
			match self {
				Error::Quota => {
					"The module has 64 topics or 8,192 subscribers, or other topics keep as much memory as there is."
				}
				Error::TooLarge => {
					"A message of more than 64 KiB, or a key of more than 256 bytes."
				}
				Error::InvalidTopic => "No topic of 1 to 64 visible ASCII characters.",
				Error::Gone => {
					"Messages behind that number gave way to others, or the topic never had it: subscribe to the oldest, or to the newest."
				}
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
				3 => Error::Gone,
				_ => panic!("invalid enum discriminant"),
			}
		}
	}
	/// Where a subscriber begins.
	#[derive(Clone, Copy)]
	pub enum Start {
		/// With the oldest message that is kept.
		Oldest,
		/// With the next one that is published.
		Newest,
		/// With the one behind that of this number.
		After(u64),
	}
	impl ::core::fmt::Debug for Start {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			match self {
				Start::Oldest => f.debug_tuple("Start::Oldest").finish(),
				Start::Newest => f.debug_tuple("Start::Newest").finish(),
				Start::After(e) => f.debug_tuple("Start::After").field(e).finish(),
			}
		}
	}
	/// What a subscriber reads of each message.
	#[repr(u8)]
	#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
	pub enum Framing {
		/// The message as it was published, with nothing before and behind it: whoever publishes says where one ends.
		Bytes,
		/// A line `id: NUMBER`, then the message: for messages that are server-sent events, `data: …` and an empty line. Clients send
		/// the last number back in `last-event-id`.
		Events,
		/// The number as eight bytes and the length as four, both little-endian, then the message.
		Records,
	}
	impl ::core::fmt::Debug for Framing {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			match self {
				Framing::Bytes => f.debug_tuple("Framing::Bytes").finish(),
				Framing::Events => f.debug_tuple("Framing::Events").finish(),
				Framing::Records => f.debug_tuple("Framing::Records").finish(),
			}
		}
	}
	impl Framing {
		#[doc(hidden)]
		pub unsafe fn _lift(val: u8) -> Framing {
			if !cfg!(debug_assertions) {
				return unsafe { ::core::mem::transmute(val) };
			}
			match val {
				0 => Framing::Bytes,
				1 => Framing::Events,
				2 => Framing::Records,
				_ => panic!("invalid enum discriminant"),
			}
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Publishes a message, and waits for nobody. Returns its number.
	///
	/// A message with a key replaces the one of that key for those that subscribe later: with a key for each thing that is told of,
	/// they begin with the last state of each. Replaced messages give way first. An empty key is none.
	#[allow(async_fn_in_trait)]
	pub fn publish(
		topic: &str,
		message: &[u8],
		key: Option<&[u8]>,
	) -> Result<u64, Error> {
		unsafe {
			#[repr(align(8))]
			struct RetArea([::core::mem::MaybeUninit<u8>; 16]);
			let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 16]);
			let vec0 = topic;
			let ptr0 = vec0.as_ptr().cast::<u8>();
			let len0 = vec0.len();
			let vec1 = message;
			let ptr1 = vec1.as_ptr().cast::<u8>();
			let len1 = vec1.len();
			let (result3_0, result3_1, result3_2) = match key {
				Some(e) => {
					let vec2 = e;
					let ptr2 = vec2.as_ptr().cast::<u8>();
					let len2 = vec2.len();
					(1i32, ptr2.cast_mut(), len2)
				}
				None => (0i32, ::core::ptr::null_mut(), 0usize),
			};
			let ptr4 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:channel/channel@1.0.0")]
			unsafe extern "C" {
				#[link_name = "publish"]
				fn wit_import5(
					_: *mut u8,
					_: usize,
					_: *mut u8,
					_: usize,
					_: i32,
					_: *mut u8,
					_: usize,
					_: *mut u8,
				);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import5(
				_: *mut u8,
				_: usize,
				_: *mut u8,
				_: usize,
				_: i32,
				_: *mut u8,
				_: usize,
				_: *mut u8,
			) {
				unreachable!()
			}
			wit_import5(
				ptr0.cast_mut(),
				len0,
				ptr1.cast_mut(),
				len1,
				result3_0,
				result3_1,
				result3_2,
				ptr4,
			);
			let l6 = i32::from(*ptr4.add(0).cast::<u8>());
			let result9 = match l6 {
				0 => {
					let e = {
						let l7 = *ptr4.add(8).cast::<i64>();
						l7 as u64
					};
					Ok(e)
				}
				1 => {
					let e = {
						let l8 = i32::from(*ptr4.add(8).cast::<u8>());
						Error::_lift(l8 as u8)
					};
					Err(e)
				}
				_ => _rt::invalid_enum_discriminant(),
			};
			result9
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Returns a stream of a topic's messages, which waits at its end for more. The topic need not have been published to.
	///
	/// A reader that is so slow that messages which it has not read give way is cut: its stream fails once, with an error
	/// of which `is-behind` is true, and is closed then. Others notice nothing. Of messages that were replaced by their keys, a slow
	/// reader may miss some without that. The stream is closed without an error when the topic is.
	#[allow(async_fn_in_trait)]
	pub fn subscribe(
		topic: &str,
		start: Start,
		framing: Framing,
	) -> Result<InputStream, Error> {
		unsafe {
			#[repr(align(4))]
			struct RetArea([::core::mem::MaybeUninit<u8>; 8]);
			let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 8]);
			let vec0 = topic;
			let ptr0 = vec0.as_ptr().cast::<u8>();
			let len0 = vec0.len();
			let (result1_0, result1_1) = match start {
				Start::Oldest => (0i32, 0i64),
				Start::Newest => (1i32, 0i64),
				Start::After(e) => (2i32, _rt::as_i64(e)),
			};
			let ptr2 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:channel/channel@1.0.0")]
			unsafe extern "C" {
				#[link_name = "subscribe"]
				fn wit_import3(_: *mut u8, _: usize, _: i32, _: i64, _: i32, _: *mut u8);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import3(
				_: *mut u8,
				_: usize,
				_: i32,
				_: i64,
				_: i32,
				_: *mut u8,
			) {
				unreachable!()
			}
			wit_import3(
				ptr0.cast_mut(),
				len0,
				result1_0,
				result1_1,
				framing.clone() as i32,
				ptr2,
			);
			let l4 = i32::from(*ptr2.add(0).cast::<u8>());
			let result7 = match l4 {
				0 => {
					let e = {
						let l5 = *ptr2.add(4).cast::<i32>();
						super::super::super::wasi::io::streams::InputStream::from_handle(
							l5 as u32,
						)
					};
					Ok(e)
				}
				1 => {
					let e = {
						let l6 = i32::from(*ptr2.add(4).cast::<u8>());
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
	/// Forgets a topic. Its subscribers get what they have not read, and then the end of their streams.
	#[allow(async_fn_in_trait)]
	pub fn close(topic: &str) -> () {
		unsafe {
			let vec0 = topic;
			let ptr0 = vec0.as_ptr().cast::<u8>();
			let len0 = vec0.len();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:channel/channel@1.0.0")]
			unsafe extern "C" {
				#[link_name = "close"]
				fn wit_import1(_: *mut u8, _: usize);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import1(_: *mut u8, _: usize) {
				unreachable!()
			}
			wit_import1(ptr0.cast_mut(), len0);
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Returns whether a stream failed since its reader was too slow.
	#[allow(async_fn_in_trait)]
	pub fn is_behind(error: &StreamError) -> bool {
		unsafe {
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:channel/channel@1.0.0")]
			unsafe extern "C" {
				#[link_name = "is-behind"]
				fn wit_import0(_: i32) -> i32;
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import0(_: i32) -> i32 {
				unreachable!()
			}
			let ret = wit_import0((error).handle() as i32);
			_rt::bool_lift(ret as u8)
		}
	}
}
