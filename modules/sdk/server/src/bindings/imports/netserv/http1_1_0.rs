// SPDX-License-Identifier: Apache-2.0
// Made from wit/ by `./dev bindings`.

/// What the node answers by itself from entries of the module's cache: small things that are asked for again and again.
///
/// An instance that answers from an entry says what further requests for the same get. The node then answers `GET` and `HEAD` of HTTP/1
/// and HTTP/2 for exactly this authority and path, on connections of the same kind as the request of the instance (intercepted or not,
/// with TLS or without), as long as the entry is there and fresh and its body, if that has no more than 65,536 bytes, is in memory. All other requests get an instance, as
/// without this: those with a body, `range`, `if-match` and the like, `cache-control`, `pragma`, `authorization`,
/// `proxy-authorization`, `expect`, `te` or `upgrade`, and those that have a header of `unless`.
///
/// The node forgets an answer at once when its entry is removed, purged, replaced, updated or stale, when a control message comes for the
/// module, and when the answer's time is over. While a control message waits to be received, all requests get an instance. A new version
/// of the module begins without any. Each such answer counts as a request of the module.
#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
pub mod hits {
	#[used]
	#[doc(hidden)]
	static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
	use super::super::super::_rt;
	pub type Reader = super::super::super::netserv::cache1_1_0::entries::Reader;
	/// What is asked for, as the request says it.
	#[derive(Clone)]
	pub struct Target {
		/// As `incoming-request.authority` has it, in the same case.
		pub authority: _rt::String,
		/// Begins with `/`.
		pub path_with_query: _rt::String,
	}
	impl ::core::fmt::Debug for Target {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			f.debug_struct("Target")
				.field("authority", &self.authority)
				.field("path-with-query", &self.path_with_query)
				.finish()
		}
	}
	/// What requests get, beside the entry's body.
	#[derive(Clone)]
	pub struct Answer {
		/// 200 to 599, but for 204, 205, 206 and 304.
		pub status: u16,
		/// At most 98 lines, without `set-cookie` and those of one connection (`connection`, `keep-alive`, `proxy-connection`, `te`,
		/// `trailer`, `transfer-encoding`, `upgrade`). The node adds `content-length`, and `age`: seconds since the entry was put or
		/// updated.
		pub headers: _rt::Vec<(_rt::String, _rt::Vec<u8>)>,
		/// Names of headers, at most 32: who sends one of them gets an instance. Those that `vary` names count as well.
		pub unless: _rt::Vec<_rt::String>,
		/// Milliseconds after which the answer is forgotten; 0 if it lasts as long as the entry.
		pub for_ms: u32,
		/// The counter of the module's (`netserv:metrics`) that counts these answers; none if it is empty.
		pub counter: _rt::String,
	}
	impl ::core::fmt::Debug for Answer {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			f.debug_struct("Answer")
				.field("status", &self.status)
				.field("headers", &self.headers)
				.field("unless", &self.unless)
				.field("for-ms", &self.for_ms)
				.field("counter", &self.counter)
				.finish()
		}
	}
	/// Why the node does not answer by itself. Nothing else changes: further requests get an instance.
	#[repr(u8)]
	#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
	pub enum Error {
		/// The target, the status, a header or a name is not as it has to be, or `vary` is `*`.
		Invalid,
		/// The body has over 16,777,216 bytes, or target, headers and names have over 16,384.
		TooLarge,
		/// The entry was being written when it was opened.
		NotWhole,
		/// A control message came since the instance began, or the entry is not there any more.
		Outdated,
		/// There is no memory, or the module has as many counters as it may.
		Quota,
		/// The instance answers no request, or other modules of a service look at requests before this one.
		Unavailable,
	}
	impl Error {
		pub fn name(&self) -> &'static str {
			match self {
				Error::Invalid => "invalid",
				Error::TooLarge => "too-large",
				Error::NotWhole => "not-whole",
				Error::Outdated => "outdated",
				Error::Quota => "quota",
				Error::Unavailable => "unavailable",
			}
		}
		pub fn message(&self) -> &'static str {
			match self {
				Error::Invalid => {
					"The target, the status, a header or a name is not as it has to be, or `vary` is `*`."
				}
				Error::TooLarge => {
					"The body has over 16,777,216 bytes, or target, headers and names have over 16,384."
				}
				Error::NotWhole => "The entry was being written when it was opened.",
				Error::Outdated => {
					"A control message came since the instance began, or the entry is not there any more."
				}
				Error::Quota => {
					"There is no memory, or the module has as many counters as it may."
				}
				Error::Unavailable => {
					"The instance answers no request, or other modules of a service look at requests before this one."
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
				0 => Error::Invalid,
				1 => Error::TooLarge,
				2 => Error::NotWhole,
				3 => Error::Outdated,
				4 => Error::Quota,
				5 => Error::Unavailable,
				_ => panic!("invalid enum discriminant"),
			}
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Has the node answer further requests for a target from an entry, on connections of the same kind: opened to the module, or taken over on
	/// their way to the same server, and over TLS or not. It takes the place of what was put for the target before; of more
	/// than 4,096, the one that was put first is forgotten.
	#[allow(async_fn_in_trait)]
	pub fn put(target: &Target, answer: &Answer, entry: &Reader) -> Result<(), Error> {
		unsafe {
			#[repr(align(1))]
			struct RetArea([::core::mem::MaybeUninit<u8>; 2]);
			let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 2]);
			let Target { authority: authority0, path_with_query: path_with_query0 } = target;
			let vec1 = authority0;
			let ptr1 = vec1.as_ptr().cast::<u8>();
			let len1 = vec1.len();
			let vec2 = path_with_query0;
			let ptr2 = vec2.as_ptr().cast::<u8>();
			let len2 = vec2.len();
			let Answer {
				status: status3,
				headers: headers3,
				unless: unless3,
				for_ms: for_ms3,
				counter: counter3,
			} = answer;
			let vec7 = headers3;
			let len7 = vec7.len();
			let layout7 = _rt::alloc::Layout::from_size_align(
					vec7.len() * (4 * ::core::mem::size_of::<*const u8>()),
					::core::mem::size_of::<*const u8>(),
				)
				.unwrap();
			let (result7, _cleanup7) = wit_bindgen::rt::Cleanup::new(layout7);
			for (i, e) in vec7.into_iter().enumerate() {
				let base = result7.add(i * (4 * ::core::mem::size_of::<*const u8>()));
				{
					let (t4_0, t4_1) = e;
					let vec5 = t4_0;
					let ptr5 = vec5.as_ptr().cast::<u8>();
					let len5 = vec5.len();
					*base.add(::core::mem::size_of::<*const u8>()).cast::<usize>() = len5;
					*base.add(0).cast::<*mut u8>() = ptr5.cast_mut();
					let vec6 = t4_1;
					let ptr6 = vec6.as_ptr().cast::<u8>();
					let len6 = vec6.len();
					*base.add(3 * ::core::mem::size_of::<*const u8>()).cast::<usize>() = len6;
					*base
						.add(2 * ::core::mem::size_of::<*const u8>())
						.cast::<*mut u8>() = ptr6.cast_mut();
				}
			}
			let vec9 = unless3;
			let len9 = vec9.len();
			let layout9 = _rt::alloc::Layout::from_size_align(
					vec9.len() * (2 * ::core::mem::size_of::<*const u8>()),
					::core::mem::size_of::<*const u8>(),
				)
				.unwrap();
			let (result9, _cleanup9) = wit_bindgen::rt::Cleanup::new(layout9);
			for (i, e) in vec9.into_iter().enumerate() {
				let base = result9.add(i * (2 * ::core::mem::size_of::<*const u8>()));
				{
					let vec8 = e;
					let ptr8 = vec8.as_ptr().cast::<u8>();
					let len8 = vec8.len();
					*base.add(::core::mem::size_of::<*const u8>()).cast::<usize>() = len8;
					*base.add(0).cast::<*mut u8>() = ptr8.cast_mut();
				}
			}
			let vec10 = counter3;
			let ptr10 = vec10.as_ptr().cast::<u8>();
			let len10 = vec10.len();
			let ptr11 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:http/hits@1.1.0")]
			unsafe extern "C" {
				#[link_name = "put"]
				fn wit_import12(
					_: *mut u8,
					_: usize,
					_: *mut u8,
					_: usize,
					_: i32,
					_: *mut u8,
					_: usize,
					_: *mut u8,
					_: usize,
					_: i32,
					_: *mut u8,
					_: usize,
					_: i32,
					_: *mut u8,
				);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import12(
				_: *mut u8,
				_: usize,
				_: *mut u8,
				_: usize,
				_: i32,
				_: *mut u8,
				_: usize,
				_: *mut u8,
				_: usize,
				_: i32,
				_: *mut u8,
				_: usize,
				_: i32,
				_: *mut u8,
			) {
				unreachable!()
			}
			wit_import12(
				ptr1.cast_mut(),
				len1,
				ptr2.cast_mut(),
				len2,
				_rt::as_i32(status3),
				result7,
				len7,
				result9,
				len9,
				_rt::as_i32(for_ms3),
				ptr10.cast_mut(),
				len10,
				(entry).handle() as i32,
				ptr11,
			);
			let l13 = i32::from(*ptr11.add(0).cast::<u8>());
			let result15 = match l13 {
				0 => {
					let e = ();
					Ok(e)
				}
				1 => {
					let e = {
						let l14 = i32::from(*ptr11.add(1).cast::<u8>());
						Error::_lift(l14 as u8)
					};
					Err(e)
				}
				_ => _rt::invalid_enum_discriminant(),
			};
			result15
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Has requests for a target get an instance again, on connections of any kind. Returns whether there was something.
	#[allow(async_fn_in_trait)]
	pub fn remove(target: &Target) -> bool {
		unsafe {
			let Target { authority: authority0, path_with_query: path_with_query0 } = target;
			let vec1 = authority0;
			let ptr1 = vec1.as_ptr().cast::<u8>();
			let len1 = vec1.len();
			let vec2 = path_with_query0;
			let ptr2 = vec2.as_ptr().cast::<u8>();
			let len2 = vec2.len();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:http/hits@1.1.0")]
			unsafe extern "C" {
				#[link_name = "remove"]
				fn wit_import3(_: *mut u8, _: usize, _: *mut u8, _: usize) -> i32;
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import3(
				_: *mut u8,
				_: usize,
				_: *mut u8,
				_: usize,
			) -> i32 {
				unreachable!()
			}
			let ret = wit_import3(ptr1.cast_mut(), len1, ptr2.cast_mut(), len2);
			_rt::bool_lift(ret as u8)
		}
	}
}
