// SPDX-License-Identifier: Apache-2.0
// Made from wit/ by `./dev bindings`.

/// Things of any size that may be forgotten, on the node's disk; the least recently used go first.
#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
pub mod store {
	#[used]
	#[doc(hidden)]
	static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
	use super::super::super::_rt;
	pub type InputStream = super::super::super::wasi::io::streams::InputStream;
	pub type OutputStream = super::super::super::wasi::io::streams::OutputStream;
	/// Why nothing was done.
	#[repr(u8)]
	#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
	pub enum Error {
		/// An entry is larger than the module's share.
		TooLarge,
		/// A key or a piece of metadata is empty or too long.
		Invalid,
		/// The cache's file cannot be used; it behaves as if it were empty.
		Unavailable,
	}
	impl Error {
		pub fn name(&self) -> &'static str {
			match self {
				Error::TooLarge => "too-large",
				Error::Invalid => "invalid",
				Error::Unavailable => "unavailable",
			}
		}
		pub fn message(&self) -> &'static str {
			match self {
				Error::TooLarge => "An entry is larger than the module's share.",
				Error::Invalid => "A key or a piece of metadata is empty or too long.",
				Error::Unavailable => {
					"The cache's file cannot be used; it behaves as if it were empty."
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
				0 => Error::TooLarge,
				1 => Error::Invalid,
				2 => Error::Unavailable,
				_ => panic!("invalid enum discriminant"),
			}
		}
	}
	/// What is known of an entry.
	#[derive(Clone)]
	pub struct Entry {
		/// Bytes of the body.
		pub size: u64,
		/// The media type, at most 256 bytes.
		pub content_type: _rt::String,
		/// The validator, at most 256 bytes.
		pub etag: _rt::String,
		/// Seconds since it was put.
		pub age: u64,
		/// Seconds after which it counts as stale; it is still returned.
		pub max_age: u64,
	}
	impl ::core::fmt::Debug for Entry {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			f.debug_struct("Entry")
				.field("size", &self.size)
				.field("content-type", &self.content_type)
				.field("etag", &self.etag)
				.field("age", &self.age)
				.field("max-age", &self.max_age)
				.finish()
		}
	}
	/// A part of a body: from `start`, `length` bytes or to the end.
	#[repr(C)]
	#[derive(Clone, Copy)]
	pub struct Range {
		pub start: u64,
		pub length: Option<u64>,
	}
	impl ::core::fmt::Debug for Range {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			f.debug_struct("Range")
				.field("start", &self.start)
				.field("length", &self.length)
				.finish()
		}
	}
	/// An entry that is being written. Dropping it before `finish` forgets it.
	#[derive(Debug)]
	#[repr(transparent)]
	pub struct Writer {
		handle: _rt::Resource<Writer>,
	}
	impl Writer {
		#[doc(hidden)]
		pub unsafe fn from_handle(handle: u32) -> Self {
			Self {
				handle: unsafe { _rt::Resource::from_handle(handle) },
			}
		}
		#[doc(hidden)]
		pub fn take_handle(&self) -> u32 {
			_rt::Resource::take_handle(&self.handle)
		}
		#[doc(hidden)]
		pub fn handle(&self) -> u32 {
			_rt::Resource::handle(&self.handle)
		}
	}
	unsafe impl _rt::WasmResource for Writer {
		#[inline]
		unsafe fn drop(_handle: u32) {
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:cache/store@1.0.0")]
			unsafe extern "C" {
				#[link_name = "[resource-drop]writer"]
				fn drop(_: i32);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn drop(_: i32) {
				unreachable!()
			}
			unsafe {
				drop(_handle as i32);
			}
		}
	}
	impl Writer {
		#[allow(unused_unsafe, clippy::all)]
		/// Returns the stream for the body. It fails once the body is larger than the module's share.
		#[allow(async_fn_in_trait)]
		pub fn body(&self) -> Result<OutputStream, Error> {
			unsafe {
				#[repr(align(4))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 8]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 8]);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "netserv:cache/store@1.0.0")]
				unsafe extern "C" {
					#[link_name = "[method]writer.body"]
					fn wit_import1(_: i32, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: *mut u8) {
					unreachable!()
				}
				wit_import1((self).handle() as i32, ptr0);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				let result5 = match l2 {
					0 => {
						let e = {
							let l3 = *ptr0.add(4).cast::<i32>();
							super::super::super::wasi::io::streams::OutputStream::from_handle(
								l3 as u32,
							)
						};
						Ok(e)
					}
					1 => {
						let e = {
							let l4 = i32::from(*ptr0.add(4).cast::<u8>());
							Error::_lift(l4 as u8)
						};
						Err(e)
					}
					_ => _rt::invalid_enum_discriminant(),
				};
				result5
			}
		}
	}
	impl Writer {
		#[allow(unused_unsafe, clippy::all)]
		/// Makes the entry visible, in place of an older one. The stream must have been dropped.
		#[allow(async_fn_in_trait)]
		pub fn finish(this: Writer) -> Result<(), Error> {
			unsafe {
				#[repr(align(1))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 2]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 2]);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "netserv:cache/store@1.0.0")]
				unsafe extern "C" {
					#[link_name = "[static]writer.finish"]
					fn wit_import1(_: i32, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: *mut u8) {
					unreachable!()
				}
				wit_import1((&this).take_handle() as i32, ptr0);
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
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Returns what is known of a key.
	#[allow(async_fn_in_trait)]
	pub fn stat(key: &str) -> Option<Entry> {
		unsafe {
			#[repr(align(8))]
			struct RetArea(
				[::core::mem::MaybeUninit<
					u8,
				>; 32 + 4 * ::core::mem::size_of::<*const u8>()],
			);
			let mut ret_area = RetArea(
				[::core::mem::MaybeUninit::uninit(); 32
					+ 4 * ::core::mem::size_of::<*const u8>()],
			);
			let vec0 = key;
			let ptr0 = vec0.as_ptr().cast::<u8>();
			let len0 = vec0.len();
			let ptr1 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:cache/store@1.0.0")]
			unsafe extern "C" {
				#[link_name = "stat"]
				fn wit_import2(_: *mut u8, _: usize, _: *mut u8);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import2(_: *mut u8, _: usize, _: *mut u8) {
				unreachable!()
			}
			wit_import2(ptr0.cast_mut(), len0, ptr1);
			let l3 = i32::from(*ptr1.add(0).cast::<u8>());
			let result13 = match l3 {
				0 => None,
				1 => {
					let e = {
						let l4 = *ptr1.add(8).cast::<i64>();
						let l5 = *ptr1.add(16).cast::<*mut u8>();
						let l6 = *ptr1
							.add(16 + 1 * ::core::mem::size_of::<*const u8>())
							.cast::<usize>();
						let len7 = l6;
						let bytes7 = _rt::Vec::from_raw_parts(l5.cast(), len7, len7);
						let l8 = *ptr1
							.add(16 + 2 * ::core::mem::size_of::<*const u8>())
							.cast::<*mut u8>();
						let l9 = *ptr1
							.add(16 + 3 * ::core::mem::size_of::<*const u8>())
							.cast::<usize>();
						let len10 = l9;
						let bytes10 = _rt::Vec::from_raw_parts(l8.cast(), len10, len10);
						let l11 = *ptr1
							.add(16 + 4 * ::core::mem::size_of::<*const u8>())
							.cast::<i64>();
						let l12 = *ptr1
							.add(24 + 4 * ::core::mem::size_of::<*const u8>())
							.cast::<i64>();
						Entry {
							size: l4 as u64,
							content_type: _rt::string_lift(bytes7),
							etag: _rt::string_lift(bytes10),
							age: l11 as u64,
							max_age: l12 as u64,
						}
					};
					Some(e)
				}
				_ => _rt::invalid_enum_discriminant(),
			};
			result13
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Returns an entry with its body, or a part of it.
	#[allow(async_fn_in_trait)]
	pub fn get(
		key: &str,
		range: Option<Range>,
	) -> Result<Option<(Entry, InputStream)>, Error> {
		unsafe {
			#[repr(align(8))]
			struct RetArea(
				[::core::mem::MaybeUninit<
					u8,
				>; 48 + 4 * ::core::mem::size_of::<*const u8>()],
			);
			let mut ret_area = RetArea(
				[::core::mem::MaybeUninit::uninit(); 48
					+ 4 * ::core::mem::size_of::<*const u8>()],
			);
			let vec0 = key;
			let ptr0 = vec0.as_ptr().cast::<u8>();
			let len0 = vec0.len();
			let (result3_0, result3_1, result3_2, result3_3) = match range {
				Some(e) => {
					let Range { start: start1, length: length1 } = e;
					let (result2_0, result2_1) = match length1 {
						Some(e) => (1i32, _rt::as_i64(e)),
						None => (0i32, 0i64),
					};
					(1i32, _rt::as_i64(start1), result2_0, result2_1)
				}
				None => (0i32, 0i64, 0i32, 0i64),
			};
			let ptr4 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:cache/store@1.0.0")]
			unsafe extern "C" {
				#[link_name = "get"]
				fn wit_import5(
					_: *mut u8,
					_: usize,
					_: i32,
					_: i64,
					_: i32,
					_: i64,
					_: *mut u8,
				);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import5(
				_: *mut u8,
				_: usize,
				_: i32,
				_: i64,
				_: i32,
				_: i64,
				_: *mut u8,
			) {
				unreachable!()
			}
			wit_import5(
				ptr0.cast_mut(),
				len0,
				result3_0,
				result3_1,
				result3_2,
				result3_3,
				ptr4,
			);
			let l6 = i32::from(*ptr4.add(0).cast::<u8>());
			let result19 = match l6 {
				0 => {
					let e = {
						let l7 = i32::from(*ptr4.add(8).cast::<u8>());
						match l7 {
							0 => None,
							1 => {
								let e = {
									let l8 = *ptr4.add(16).cast::<i64>();
									let l9 = *ptr4.add(24).cast::<*mut u8>();
									let l10 = *ptr4
										.add(24 + 1 * ::core::mem::size_of::<*const u8>())
										.cast::<usize>();
									let len11 = l10;
									let bytes11 = _rt::Vec::from_raw_parts(
										l9.cast(),
										len11,
										len11,
									);
									let l12 = *ptr4
										.add(24 + 2 * ::core::mem::size_of::<*const u8>())
										.cast::<*mut u8>();
									let l13 = *ptr4
										.add(24 + 3 * ::core::mem::size_of::<*const u8>())
										.cast::<usize>();
									let len14 = l13;
									let bytes14 = _rt::Vec::from_raw_parts(
										l12.cast(),
										len14,
										len14,
									);
									let l15 = *ptr4
										.add(24 + 4 * ::core::mem::size_of::<*const u8>())
										.cast::<i64>();
									let l16 = *ptr4
										.add(32 + 4 * ::core::mem::size_of::<*const u8>())
										.cast::<i64>();
									let l17 = *ptr4
										.add(40 + 4 * ::core::mem::size_of::<*const u8>())
										.cast::<i32>();
									(
										Entry {
											size: l8 as u64,
											content_type: _rt::string_lift(bytes11),
											etag: _rt::string_lift(bytes14),
											age: l15 as u64,
											max_age: l16 as u64,
										},
										super::super::super::wasi::io::streams::InputStream::from_handle(
											l17 as u32,
										),
									)
								};
								Some(e)
							}
							_ => _rt::invalid_enum_discriminant(),
						}
					};
					Ok(e)
				}
				1 => {
					let e = {
						let l18 = i32::from(*ptr4.add(8).cast::<u8>());
						Error::_lift(l18 as u8)
					};
					Err(e)
				}
				_ => _rt::invalid_enum_discriminant(),
			};
			result19
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Begins an entry.
	#[allow(async_fn_in_trait)]
	pub fn put(
		key: &str,
		content_type: &str,
		etag: &str,
		max_age: u64,
	) -> Result<Writer, Error> {
		unsafe {
			#[repr(align(4))]
			struct RetArea([::core::mem::MaybeUninit<u8>; 8]);
			let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 8]);
			let vec0 = key;
			let ptr0 = vec0.as_ptr().cast::<u8>();
			let len0 = vec0.len();
			let vec1 = content_type;
			let ptr1 = vec1.as_ptr().cast::<u8>();
			let len1 = vec1.len();
			let vec2 = etag;
			let ptr2 = vec2.as_ptr().cast::<u8>();
			let len2 = vec2.len();
			let ptr3 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:cache/store@1.0.0")]
			unsafe extern "C" {
				#[link_name = "put"]
				fn wit_import4(
					_: *mut u8,
					_: usize,
					_: *mut u8,
					_: usize,
					_: *mut u8,
					_: usize,
					_: i64,
					_: *mut u8,
				);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import4(
				_: *mut u8,
				_: usize,
				_: *mut u8,
				_: usize,
				_: *mut u8,
				_: usize,
				_: i64,
				_: *mut u8,
			) {
				unreachable!()
			}
			wit_import4(
				ptr0.cast_mut(),
				len0,
				ptr1.cast_mut(),
				len1,
				ptr2.cast_mut(),
				len2,
				_rt::as_i64(&max_age),
				ptr3,
			);
			let l5 = i32::from(*ptr3.add(0).cast::<u8>());
			let result8 = match l5 {
				0 => {
					let e = {
						let l6 = *ptr3.add(4).cast::<i32>();
						Writer::from_handle(l6 as u32)
					};
					Ok(e)
				}
				1 => {
					let e = {
						let l7 = i32::from(*ptr3.add(4).cast::<u8>());
						Error::_lift(l7 as u8)
					};
					Err(e)
				}
				_ => _rt::invalid_enum_discriminant(),
			};
			result8
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Forgets an entry. Returns whether it was there.
	#[allow(async_fn_in_trait)]
	pub fn remove(key: &str) -> bool {
		unsafe {
			let vec0 = key;
			let ptr0 = vec0.as_ptr().cast::<u8>();
			let len0 = vec0.len();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:cache/store@1.0.0")]
			unsafe extern "C" {
				#[link_name = "remove"]
				fn wit_import1(_: *mut u8, _: usize) -> i32;
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import1(_: *mut u8, _: usize) -> i32 {
				unreachable!()
			}
			let ret = wit_import1(ptr0.cast_mut(), len0);
			_rt::bool_lift(ret as u8)
		}
	}
}
