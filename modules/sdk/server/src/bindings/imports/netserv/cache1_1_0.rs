// SPDX-License-Identifier: Apache-2.0
// Made from wit/ by `./dev bindings`.

/// Things of any size that may be forgotten, on the node's disk; the least recently used go first.
///
/// A module that imports `store@1.0.0`, too, sees the same entries there. A key has 1 to 1,024 bytes.
#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
pub mod entries {
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
		/// An entry is larger than the module's share, or the rest of the share is being read or written.
		TooLarge,
		/// A key, a detail, a prefix or a tag is empty where it must not be, or too long; or a body has not the size that was
		/// promised.
		Invalid,
		/// The cache's file cannot be used; it behaves as if it were empty.
		Unavailable,
		/// The module writes 64 entries, the instance reads 16 bodies, or a purge of the module's goes on.
		Busy,
		/// 8,192 read the entry while it is being written.
		TooManyReaders,
		/// Who wrote the entry gave it up: its writer was dropped, or its instance ended.
		Abandoned,
		/// Who wrote the entry did nothing for 60 s while others waited. The entry is given up.
		Stalled,
	}
	impl Error {
		pub fn name(&self) -> &'static str {
			match self {
				Error::TooLarge => "too-large",
				Error::Invalid => "invalid",
				Error::Unavailable => "unavailable",
				Error::Busy => "busy",
				Error::TooManyReaders => "too-many-readers",
				Error::Abandoned => "abandoned",
				Error::Stalled => "stalled",
			}
		}
		pub fn message(&self) -> &'static str {
			match self {
				Error::TooLarge => {
					"An entry is larger than the module's share, or the rest of the share is being read or written."
				}
				Error::Invalid => {
					"A key, a detail, a prefix or a tag is empty where it must not be, or too long; or a body has not the size that was
			promised."
				}
				Error::Unavailable => {
					"The cache's file cannot be used; it behaves as if it were empty."
				}
				Error::Busy => {
					"The module writes 64 entries, the instance reads 16 bodies, or a purge of the module's goes on."
				}
				Error::TooManyReaders => {
					"8,192 read the entry while it is being written."
				}
				Error::Abandoned => {
					"Who wrote the entry gave it up: its writer was dropped, or its instance ended."
				}
				Error::Stalled => {
					"Who wrote the entry did nothing for 60 s while others waited. The entry is given up."
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
				3 => Error::Busy,
				4 => Error::TooManyReaders,
				5 => Error::Abandoned,
				6 => Error::Stalled,
				_ => panic!("invalid enum discriminant"),
			}
		}
	}
	/// What a module says of an entry.
	#[derive(Clone)]
	pub struct Details {
		/// The media type, at most 256 bytes.
		pub content_type: _rt::String,
		/// The validator, at most 256 bytes.
		pub etag: _rt::String,
		/// Seconds after which it counts as stale; it is still returned.
		pub max_age: u64,
		/// What the module keeps beside the body, such as headers: at most 16,384 bytes.
		pub meta: _rt::Vec<u8>,
		/// Words by which entries are purged: at most 8, of 1 to 64 bytes.
		pub tags: _rt::Vec<_rt::String>,
	}
	impl ::core::fmt::Debug for Details {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			f.debug_struct("Details")
				.field("content-type", &self.content_type)
				.field("etag", &self.etag)
				.field("max-age", &self.max_age)
				.field("meta", &self.meta)
				.field("tags", &self.tags)
				.finish()
		}
	}
	/// What is known of an entry.
	#[derive(Clone)]
	pub struct Entry {
		/// Bytes of the body; of an entry that is being written, what its writer promised.
		pub size: Option<u64>,
		/// Seconds since it was put or updated.
		pub age: u64,
		/// What the module said of it.
		pub details: Details,
	}
	impl ::core::fmt::Debug for Entry {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			f.debug_struct("Entry")
				.field("size", &self.size)
				.field("age", &self.age)
				.field("details", &self.details)
				.finish()
		}
	}
	/// An entry of a list.
	#[derive(Clone)]
	pub struct Listed {
		pub key: _rt::String,
		/// Bytes of the body.
		pub size: u64,
		/// Seconds since it was put or updated.
		pub age: u64,
		/// Seconds after which it counts as stale.
		pub max_age: u64,
	}
	impl ::core::fmt::Debug for Listed {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			f.debug_struct("Listed")
				.field("key", &self.key)
				.field("size", &self.size)
				.field("age", &self.age)
				.field("max-age", &self.max_age)
				.finish()
		}
	}
	/// A part of a body: from `start`, `length` bytes or to the end. What is behind the body's end is left out.
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
	/// Which entries of the module a purge forgets.
	#[derive(Clone)]
	pub enum Scope {
		/// Those whose keys begin so: up to 1,024 bytes; all of them if it is empty.
		Prefix(_rt::String),
		/// Those with this tag.
		Tag(_rt::String),
	}
	impl ::core::fmt::Debug for Scope {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			match self {
				Scope::Prefix(e) => f.debug_tuple("Scope::Prefix").field(e).finish(),
				Scope::Tag(e) => f.debug_tuple("Scope::Tag").field(e).finish(),
			}
		}
	}
	/// An entry that is being written. Dropping it before `finish` forgets it, and fails those who read it meanwhile.
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
			#[link(wasm_import_module = "netserv:cache/entries@1.1.0")]
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
	/// An entry that is read. It can be read to its end, whatever becomes of the key meanwhile.
	#[derive(Debug)]
	#[repr(transparent)]
	pub struct Reader {
		handle: _rt::Resource<Reader>,
	}
	impl Reader {
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
	unsafe impl _rt::WasmResource for Reader {
		#[inline]
		unsafe fn drop(_handle: u32) {
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:cache/entries@1.1.0")]
			unsafe extern "C" {
				#[link_name = "[resource-drop]reader"]
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
	/// What who wants an entry gets.
	pub enum Opened {
		/// The entry, or one that another instance of the module is writing.
		Reader(Reader),
		/// Neither is there: the caller writes it, and others join.
		Writer(Writer),
	}
	impl ::core::fmt::Debug for Opened {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			match self {
				Opened::Reader(e) => f.debug_tuple("Opened::Reader").field(e).finish(),
				Opened::Writer(e) => f.debug_tuple("Opened::Writer").field(e).finish(),
			}
		}
	}
	impl Writer {
		#[allow(unused_unsafe, clippy::all)]
		/// Says what the entry is, and returns the stream for the body. With a `size`, the body must have as many bytes. Who
		/// joined can read from here on. The stream fails once the body is larger than the module's share.
		///
		/// Errors: `invalid`, also if it was called before; `too-large` for a size that the module's share does not hold;
		/// `unavailable`.
		#[allow(async_fn_in_trait)]
		pub fn begin(
			&self,
			details: &Details,
			size: Option<u64>,
		) -> Result<OutputStream, Error> {
			unsafe {
				#[repr(align(4))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 8]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 8]);
				let Details {
					content_type: content_type0,
					etag: etag0,
					max_age: max_age0,
					meta: meta0,
					tags: tags0,
				} = details;
				let vec1 = content_type0;
				let ptr1 = vec1.as_ptr().cast::<u8>();
				let len1 = vec1.len();
				let vec2 = etag0;
				let ptr2 = vec2.as_ptr().cast::<u8>();
				let len2 = vec2.len();
				let vec3 = meta0;
				let ptr3 = vec3.as_ptr().cast::<u8>();
				let len3 = vec3.len();
				let vec5 = tags0;
				let len5 = vec5.len();
				let layout5 = _rt::alloc::Layout::from_size_align(
						vec5.len() * (2 * ::core::mem::size_of::<*const u8>()),
						::core::mem::size_of::<*const u8>(),
					)
					.unwrap();
				let (result5, _cleanup5) = wit_bindgen::rt::Cleanup::new(layout5);
				for (i, e) in vec5.into_iter().enumerate() {
					let base = result5
						.add(i * (2 * ::core::mem::size_of::<*const u8>()));
					{
						let vec4 = e;
						let ptr4 = vec4.as_ptr().cast::<u8>();
						let len4 = vec4.len();
						*base.add(::core::mem::size_of::<*const u8>()).cast::<usize>() = len4;
						*base.add(0).cast::<*mut u8>() = ptr4.cast_mut();
					}
				}
				let (result6_0, result6_1) = match size {
					Some(e) => (1i32, _rt::as_i64(e)),
					None => (0i32, 0i64),
				};
				let ptr7 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "netserv:cache/entries@1.1.0")]
				unsafe extern "C" {
					#[link_name = "[method]writer.begin"]
					fn wit_import8(
						_: i32,
						_: *mut u8,
						_: usize,
						_: *mut u8,
						_: usize,
						_: i64,
						_: *mut u8,
						_: usize,
						_: *mut u8,
						_: usize,
						_: i32,
						_: i64,
						_: *mut u8,
					);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import8(
					_: i32,
					_: *mut u8,
					_: usize,
					_: *mut u8,
					_: usize,
					_: i64,
					_: *mut u8,
					_: usize,
					_: *mut u8,
					_: usize,
					_: i32,
					_: i64,
					_: *mut u8,
				) {
					unreachable!()
				}
				wit_import8(
					(self).handle() as i32,
					ptr1.cast_mut(),
					len1,
					ptr2.cast_mut(),
					len2,
					_rt::as_i64(max_age0),
					ptr3.cast_mut(),
					len3,
					result5,
					len5,
					result6_0,
					result6_1,
					ptr7,
				);
				let l9 = i32::from(*ptr7.add(0).cast::<u8>());
				let result12 = match l9 {
					0 => {
						let e = {
							let l10 = *ptr7.add(4).cast::<i32>();
							super::super::super::wasi::io::streams::OutputStream::from_handle(
								l10 as u32,
							)
						};
						Ok(e)
					}
					1 => {
						let e = {
							let l11 = i32::from(*ptr7.add(4).cast::<u8>());
							Error::_lift(l11 as u8)
						};
						Err(e)
					}
					_ => _rt::invalid_enum_discriminant(),
				};
				result12
			}
		}
	}
	impl Writer {
		#[allow(unused_unsafe, clippy::all)]
		/// Makes the entry visible, in place of an older one. The stream must have been dropped.
		///
		/// Errors: `invalid` without `begin`, with a stream that is still there, or if the body has another size than was
		/// promised; `too-large`; `unavailable`.
		#[allow(async_fn_in_trait)]
		pub fn finish(this: Writer) -> Result<(), Error> {
			unsafe {
				#[repr(align(1))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 2]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 2]);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "netserv:cache/entries@1.1.0")]
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
	impl Reader {
		#[allow(unused_unsafe, clippy::all)]
		/// Returns what was known of the entry when it was opened, and its age.
		#[allow(async_fn_in_trait)]
		pub fn entry(&self) -> Entry {
			unsafe {
				#[repr(align(8))]
				struct RetArea(
					[::core::mem::MaybeUninit<
						u8,
					>; 32 + 8 * ::core::mem::size_of::<*const u8>()],
				);
				let mut ret_area = RetArea(
					[::core::mem::MaybeUninit::uninit(); 32
						+ 8 * ::core::mem::size_of::<*const u8>()],
				);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "netserv:cache/entries@1.1.0")]
				unsafe extern "C" {
					#[link_name = "[method]reader.entry"]
					fn wit_import1(_: i32, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: *mut u8) {
					unreachable!()
				}
				wit_import1((self).handle() as i32, ptr0);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				let l4 = *ptr0.add(16).cast::<i64>();
				let l5 = *ptr0.add(24).cast::<*mut u8>();
				let l6 = *ptr0
					.add(24 + 1 * ::core::mem::size_of::<*const u8>())
					.cast::<usize>();
				let len7 = l6;
				let bytes7 = _rt::Vec::from_raw_parts(l5.cast(), len7, len7);
				let l8 = *ptr0
					.add(24 + 2 * ::core::mem::size_of::<*const u8>())
					.cast::<*mut u8>();
				let l9 = *ptr0
					.add(24 + 3 * ::core::mem::size_of::<*const u8>())
					.cast::<usize>();
				let len10 = l9;
				let bytes10 = _rt::Vec::from_raw_parts(l8.cast(), len10, len10);
				let l11 = *ptr0
					.add(24 + 4 * ::core::mem::size_of::<*const u8>())
					.cast::<i64>();
				let l12 = *ptr0
					.add(32 + 4 * ::core::mem::size_of::<*const u8>())
					.cast::<*mut u8>();
				let l13 = *ptr0
					.add(32 + 5 * ::core::mem::size_of::<*const u8>())
					.cast::<usize>();
				let len14 = l13;
				let l15 = *ptr0
					.add(32 + 6 * ::core::mem::size_of::<*const u8>())
					.cast::<*mut u8>();
				let l16 = *ptr0
					.add(32 + 7 * ::core::mem::size_of::<*const u8>())
					.cast::<usize>();
				let base20 = l15;
				let len20 = l16;
				let mut result20 = _rt::Vec::with_capacity(len20);
				for i in 0..len20 {
					let base = base20.add(i * (2 * ::core::mem::size_of::<*const u8>()));
					let e20 = {
						let l17 = *base.add(0).cast::<*mut u8>();
						let l18 = *base
							.add(::core::mem::size_of::<*const u8>())
							.cast::<usize>();
						let len19 = l18;
						let bytes19 = _rt::Vec::from_raw_parts(l17.cast(), len19, len19);
						_rt::string_lift(bytes19)
					};
					result20.push(e20);
				}
				_rt::cabi_dealloc(
					base20,
					len20 * (2 * ::core::mem::size_of::<*const u8>()),
					::core::mem::size_of::<*const u8>(),
				);
				let result21 = Entry {
					size: match l2 {
						0 => None,
						1 => {
							let e = {
								let l3 = *ptr0.add(8).cast::<i64>();
								l3 as u64
							};
							Some(e)
						}
						_ => _rt::invalid_enum_discriminant(),
					},
					age: l4 as u64,
					details: Details {
						content_type: _rt::string_lift(bytes7),
						etag: _rt::string_lift(bytes10),
						max_age: l11 as u64,
						meta: <_ as From<
							_rt::Vec<_>,
						>>::from(_rt::Vec::from_raw_parts(l12.cast(), len14, len14)),
						tags: result20,
					},
				};
				result21
			}
		}
	}
	impl Reader {
		#[allow(unused_unsafe, clippy::all)]
		/// Returns the body, or a part of it. There may be several streams at a time. Of an entry that is being written, the
		/// stream waits for what is not there yet, and fails at once when the writer does.
		///
		/// Errors: `busy`.
		#[allow(async_fn_in_trait)]
		pub fn body(&self, range: Option<Range>) -> Result<InputStream, Error> {
			unsafe {
				#[repr(align(4))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 8]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 8]);
				let (result2_0, result2_1, result2_2, result2_3) = match range {
					Some(e) => {
						let Range { start: start0, length: length0 } = e;
						let (result1_0, result1_1) = match length0 {
							Some(e) => (1i32, _rt::as_i64(e)),
							None => (0i32, 0i64),
						};
						(1i32, _rt::as_i64(start0), result1_0, result1_1)
					}
					None => (0i32, 0i64, 0i32, 0i64),
				};
				let ptr3 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "netserv:cache/entries@1.1.0")]
				unsafe extern "C" {
					#[link_name = "[method]reader.body"]
					fn wit_import4(_: i32, _: i32, _: i64, _: i32, _: i64, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import4(
					_: i32,
					_: i32,
					_: i64,
					_: i32,
					_: i64,
					_: *mut u8,
				) {
					unreachable!()
				}
				wit_import4(
					(self).handle() as i32,
					result2_0,
					result2_1,
					result2_2,
					result2_3,
					ptr3,
				);
				let l5 = i32::from(*ptr3.add(0).cast::<u8>());
				let result8 = match l5 {
					0 => {
						let e = {
							let l6 = *ptr3.add(4).cast::<i32>();
							super::super::super::wasi::io::streams::InputStream::from_handle(
								l6 as u32,
							)
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
	}
	impl Reader {
		#[allow(unused_unsafe, clippy::all)]
		/// Returns why the entry will never be whole: `abandoned`, `stalled`, `too-large`, `invalid` or `unavailable`.
		#[allow(async_fn_in_trait)]
		pub fn failure(&self) -> Option<Error> {
			unsafe {
				#[repr(align(1))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 2]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 2]);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "netserv:cache/entries@1.1.0")]
				unsafe extern "C" {
					#[link_name = "[method]reader.failure"]
					fn wit_import1(_: i32, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: *mut u8) {
					unreachable!()
				}
				wit_import1((self).handle() as i32, ptr0);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				let result4 = match l2 {
					0 => None,
					1 => {
						let e = {
							let l3 = i32::from(*ptr0.add(1).cast::<u8>());
							Error::_lift(l3 as u8)
						};
						Some(e)
					}
					_ => _rt::invalid_enum_discriminant(),
				};
				result4
			}
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Returns what is known of a key. It does not count as a use.
	#[allow(async_fn_in_trait)]
	pub fn stat(key: &str) -> Option<Entry> {
		unsafe {
			#[repr(align(8))]
			struct RetArea(
				[::core::mem::MaybeUninit<
					u8,
				>; 40 + 8 * ::core::mem::size_of::<*const u8>()],
			);
			let mut ret_area = RetArea(
				[::core::mem::MaybeUninit::uninit(); 40
					+ 8 * ::core::mem::size_of::<*const u8>()],
			);
			let vec0 = key;
			let ptr0 = vec0.as_ptr().cast::<u8>();
			let len0 = vec0.len();
			let ptr1 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:cache/entries@1.1.0")]
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
			let result23 = match l3 {
				0 => None,
				1 => {
					let e = {
						let l4 = i32::from(*ptr1.add(8).cast::<u8>());
						let l6 = *ptr1.add(24).cast::<i64>();
						let l7 = *ptr1.add(32).cast::<*mut u8>();
						let l8 = *ptr1
							.add(32 + 1 * ::core::mem::size_of::<*const u8>())
							.cast::<usize>();
						let len9 = l8;
						let bytes9 = _rt::Vec::from_raw_parts(l7.cast(), len9, len9);
						let l10 = *ptr1
							.add(32 + 2 * ::core::mem::size_of::<*const u8>())
							.cast::<*mut u8>();
						let l11 = *ptr1
							.add(32 + 3 * ::core::mem::size_of::<*const u8>())
							.cast::<usize>();
						let len12 = l11;
						let bytes12 = _rt::Vec::from_raw_parts(l10.cast(), len12, len12);
						let l13 = *ptr1
							.add(32 + 4 * ::core::mem::size_of::<*const u8>())
							.cast::<i64>();
						let l14 = *ptr1
							.add(40 + 4 * ::core::mem::size_of::<*const u8>())
							.cast::<*mut u8>();
						let l15 = *ptr1
							.add(40 + 5 * ::core::mem::size_of::<*const u8>())
							.cast::<usize>();
						let len16 = l15;
						let l17 = *ptr1
							.add(40 + 6 * ::core::mem::size_of::<*const u8>())
							.cast::<*mut u8>();
						let l18 = *ptr1
							.add(40 + 7 * ::core::mem::size_of::<*const u8>())
							.cast::<usize>();
						let base22 = l17;
						let len22 = l18;
						let mut result22 = _rt::Vec::with_capacity(len22);
						for i in 0..len22 {
							let base = base22
								.add(i * (2 * ::core::mem::size_of::<*const u8>()));
							let e22 = {
								let l19 = *base.add(0).cast::<*mut u8>();
								let l20 = *base
									.add(::core::mem::size_of::<*const u8>())
									.cast::<usize>();
								let len21 = l20;
								let bytes21 = _rt::Vec::from_raw_parts(
									l19.cast(),
									len21,
									len21,
								);
								_rt::string_lift(bytes21)
							};
							result22.push(e22);
						}
						_rt::cabi_dealloc(
							base22,
							len22 * (2 * ::core::mem::size_of::<*const u8>()),
							::core::mem::size_of::<*const u8>(),
						);
						Entry {
							size: match l4 {
								0 => None,
								1 => {
									let e = {
										let l5 = *ptr1.add(16).cast::<i64>();
										l5 as u64
									};
									Some(e)
								}
								_ => _rt::invalid_enum_discriminant(),
							},
							age: l6 as u64,
							details: Details {
								content_type: _rt::string_lift(bytes9),
								etag: _rt::string_lift(bytes12),
								max_age: l13 as u64,
								meta: <_ as From<
									_rt::Vec<_>,
								>>::from(
									_rt::Vec::from_raw_parts(l14.cast(), len16, len16),
								),
								tags: result22,
							},
						}
					};
					Some(e)
				}
				_ => _rt::invalid_enum_discriminant(),
			};
			result23
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Opens an entry. It counts as a use.
	///
	/// Errors: `unavailable` if the entry cannot be read.
	#[allow(async_fn_in_trait)]
	pub fn get(key: &str) -> Result<Option<Reader>, Error> {
		unsafe {
			#[repr(align(4))]
			struct RetArea([::core::mem::MaybeUninit<u8>; 12]);
			let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 12]);
			let vec0 = key;
			let ptr0 = vec0.as_ptr().cast::<u8>();
			let len0 = vec0.len();
			let ptr1 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:cache/entries@1.1.0")]
			unsafe extern "C" {
				#[link_name = "get"]
				fn wit_import2(_: *mut u8, _: usize, _: *mut u8);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import2(_: *mut u8, _: usize, _: *mut u8) {
				unreachable!()
			}
			wit_import2(ptr0.cast_mut(), len0, ptr1);
			let l3 = i32::from(*ptr1.add(0).cast::<u8>());
			let result7 = match l3 {
				0 => {
					let e = {
						let l4 = i32::from(*ptr1.add(4).cast::<u8>());
						match l4 {
							0 => None,
							1 => {
								let e = {
									let l5 = *ptr1.add(8).cast::<i32>();
									Reader::from_handle(l5 as u32)
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
						let l6 = i32::from(*ptr1.add(4).cast::<u8>());
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
	/// Opens an entry that is younger than its `max-age`, or joins those who read it while it is being written, or begins it:
	/// of all instances of the module that want it, one fetches it. If it is being written, the call returns once its writer
	/// called `begin`.
	///
	/// Errors: `invalid`, `busy`, `too-many-readers`, `unavailable`; `abandoned` or `stalled` if the writer never began.
	#[allow(async_fn_in_trait)]
	pub fn open_or_join(key: &str) -> Result<Opened, Error> {
		unsafe {
			#[repr(align(4))]
			struct RetArea([::core::mem::MaybeUninit<u8>; 12]);
			let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 12]);
			let vec0 = key;
			let ptr0 = vec0.as_ptr().cast::<u8>();
			let len0 = vec0.len();
			let ptr1 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:cache/entries@1.1.0")]
			unsafe extern "C" {
				#[link_name = "open-or-join"]
				fn wit_import2(_: *mut u8, _: usize, _: *mut u8);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import2(_: *mut u8, _: usize, _: *mut u8) {
				unreachable!()
			}
			wit_import2(ptr0.cast_mut(), len0, ptr1);
			let l3 = i32::from(*ptr1.add(0).cast::<u8>());
			let result9 = match l3 {
				0 => {
					let e = {
						let l4 = i32::from(*ptr1.add(4).cast::<u8>());
						let v7 = match l4 {
							0 => {
								let e7 = {
									let l5 = *ptr1.add(8).cast::<i32>();
									Reader::from_handle(l5 as u32)
								};
								Opened::Reader(e7)
							}
							n => {
								debug_assert_eq!(n, 1, "invalid enum discriminant");
								let e7 = {
									let l6 = *ptr1.add(8).cast::<i32>();
									Writer::from_handle(l6 as u32)
								};
								Opened::Writer(e7)
							}
						};
						v7
					};
					Ok(e)
				}
				1 => {
					let e = {
						let l8 = i32::from(*ptr1.add(4).cast::<u8>());
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
	/// Begins an entry although there may be one. Those who open it before it is whole, and find none that is fresh, join.
	///
	/// Errors: `invalid`, `busy`, `unavailable`.
	#[allow(async_fn_in_trait)]
	pub fn put(key: &str) -> Result<Writer, Error> {
		unsafe {
			#[repr(align(4))]
			struct RetArea([::core::mem::MaybeUninit<u8>; 8]);
			let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 8]);
			let vec0 = key;
			let ptr0 = vec0.as_ptr().cast::<u8>();
			let len0 = vec0.len();
			let ptr1 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:cache/entries@1.1.0")]
			unsafe extern "C" {
				#[link_name = "put"]
				fn wit_import2(_: *mut u8, _: usize, _: *mut u8);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import2(_: *mut u8, _: usize, _: *mut u8) {
				unreachable!()
			}
			wit_import2(ptr0.cast_mut(), len0, ptr1);
			let l3 = i32::from(*ptr1.add(0).cast::<u8>());
			let result6 = match l3 {
				0 => {
					let e = {
						let l4 = *ptr1.add(4).cast::<i32>();
						Writer::from_handle(l4 as u32)
					};
					Ok(e)
				}
				1 => {
					let e = {
						let l5 = i32::from(*ptr1.add(4).cast::<u8>());
						Error::_lift(l5 as u8)
					};
					Err(e)
				}
				_ => _rt::invalid_enum_discriminant(),
			};
			result6
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Says something else of an entry: all details are replaced, the body stays, and its age begins anew. Returns whether it
	/// was there. It writes 1 to 3 blocks of 16 KiB, whatever the body's size.
	///
	/// Errors: `invalid`; `too-large` if there is no block left; `unavailable`.
	#[allow(async_fn_in_trait)]
	pub fn update(key: &str, details: &Details) -> Result<bool, Error> {
		unsafe {
			#[repr(align(1))]
			struct RetArea([::core::mem::MaybeUninit<u8>; 2]);
			let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 2]);
			let vec0 = key;
			let ptr0 = vec0.as_ptr().cast::<u8>();
			let len0 = vec0.len();
			let Details {
				content_type: content_type1,
				etag: etag1,
				max_age: max_age1,
				meta: meta1,
				tags: tags1,
			} = details;
			let vec2 = content_type1;
			let ptr2 = vec2.as_ptr().cast::<u8>();
			let len2 = vec2.len();
			let vec3 = etag1;
			let ptr3 = vec3.as_ptr().cast::<u8>();
			let len3 = vec3.len();
			let vec4 = meta1;
			let ptr4 = vec4.as_ptr().cast::<u8>();
			let len4 = vec4.len();
			let vec6 = tags1;
			let len6 = vec6.len();
			let layout6 = _rt::alloc::Layout::from_size_align(
					vec6.len() * (2 * ::core::mem::size_of::<*const u8>()),
					::core::mem::size_of::<*const u8>(),
				)
				.unwrap();
			let (result6, _cleanup6) = wit_bindgen::rt::Cleanup::new(layout6);
			for (i, e) in vec6.into_iter().enumerate() {
				let base = result6.add(i * (2 * ::core::mem::size_of::<*const u8>()));
				{
					let vec5 = e;
					let ptr5 = vec5.as_ptr().cast::<u8>();
					let len5 = vec5.len();
					*base.add(::core::mem::size_of::<*const u8>()).cast::<usize>() = len5;
					*base.add(0).cast::<*mut u8>() = ptr5.cast_mut();
				}
			}
			let ptr7 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:cache/entries@1.1.0")]
			unsafe extern "C" {
				#[link_name = "update"]
				fn wit_import8(
					_: *mut u8,
					_: usize,
					_: *mut u8,
					_: usize,
					_: *mut u8,
					_: usize,
					_: i64,
					_: *mut u8,
					_: usize,
					_: *mut u8,
					_: usize,
					_: *mut u8,
				);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import8(
				_: *mut u8,
				_: usize,
				_: *mut u8,
				_: usize,
				_: *mut u8,
				_: usize,
				_: i64,
				_: *mut u8,
				_: usize,
				_: *mut u8,
				_: usize,
				_: *mut u8,
			) {
				unreachable!()
			}
			wit_import8(
				ptr0.cast_mut(),
				len0,
				ptr2.cast_mut(),
				len2,
				ptr3.cast_mut(),
				len3,
				_rt::as_i64(max_age1),
				ptr4.cast_mut(),
				len4,
				result6,
				len6,
				ptr7,
			);
			let l9 = i32::from(*ptr7.add(0).cast::<u8>());
			let result12 = match l9 {
				0 => {
					let e = {
						let l10 = i32::from(*ptr7.add(1).cast::<u8>());
						_rt::bool_lift(l10 as u8)
					};
					Ok(e)
				}
				1 => {
					let e = {
						let l11 = i32::from(*ptr7.add(1).cast::<u8>());
						Error::_lift(l11 as u8)
					};
					Err(e)
				}
				_ => _rt::invalid_enum_discriminant(),
			};
			result12
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Forgets an entry. Returns whether it was there. One that is being written is read to its end by who joined, and not kept.
	#[allow(async_fn_in_trait)]
	pub fn remove(key: &str) -> bool {
		unsafe {
			let vec0 = key;
			let ptr0 = vec0.as_ptr().cast::<u8>();
			let len0 = vec0.len();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:cache/entries@1.1.0")]
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
	#[allow(unused_unsafe, clippy::all)]
	/// Returns up to `limit`, at most 1,024, entries whose keys begin with `prefix`, in the order of their bytes, from behind
	/// the key `after` on. It does not count as a use.
	///
	/// Errors: `invalid`, `unavailable`.
	#[allow(async_fn_in_trait)]
	pub fn list(
		prefix: &str,
		after: Option<&str>,
		limit: u32,
	) -> Result<_rt::Vec<Listed>, Error> {
		unsafe {
			#[cfg_attr(target_pointer_width = "64", repr(align(8)))]
			#[cfg_attr(target_pointer_width = "32", repr(align(4)))]
			struct RetArea(
				[::core::mem::MaybeUninit<u8>; 3 * ::core::mem::size_of::<*const u8>()],
			);
			let mut ret_area = RetArea(
				[::core::mem::MaybeUninit::uninit(); 3
					* ::core::mem::size_of::<*const u8>()],
			);
			let vec0 = prefix;
			let ptr0 = vec0.as_ptr().cast::<u8>();
			let len0 = vec0.len();
			let (result2_0, result2_1, result2_2) = match after {
				Some(e) => {
					let vec1 = e;
					let ptr1 = vec1.as_ptr().cast::<u8>();
					let len1 = vec1.len();
					(1i32, ptr1.cast_mut(), len1)
				}
				None => (0i32, ::core::ptr::null_mut(), 0usize),
			};
			let ptr3 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:cache/entries@1.1.0")]
			unsafe extern "C" {
				#[link_name = "list"]
				fn wit_import4(
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
			unsafe extern "C" fn wit_import4(
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
			wit_import4(
				ptr0.cast_mut(),
				len0,
				result2_0,
				result2_1,
				result2_2,
				_rt::as_i32(&limit),
				ptr3,
			);
			let l5 = i32::from(*ptr3.add(0).cast::<u8>());
			let result16 = match l5 {
				0 => {
					let e = {
						let l6 = *ptr3
							.add(::core::mem::size_of::<*const u8>())
							.cast::<*mut u8>();
						let l7 = *ptr3
							.add(2 * ::core::mem::size_of::<*const u8>())
							.cast::<usize>();
						let base14 = l6;
						let len14 = l7;
						let mut result14 = _rt::Vec::with_capacity(len14);
						for i in 0..len14 {
							let base = base14
								.add(i * (24 + 2 * ::core::mem::size_of::<*const u8>()));
							let e14 = {
								let l8 = *base.add(0).cast::<*mut u8>();
								let l9 = *base
									.add(::core::mem::size_of::<*const u8>())
									.cast::<usize>();
								let len10 = l9;
								let bytes10 = _rt::Vec::from_raw_parts(
									l8.cast(),
									len10,
									len10,
								);
								let l11 = *base
									.add(2 * ::core::mem::size_of::<*const u8>())
									.cast::<i64>();
								let l12 = *base
									.add(8 + 2 * ::core::mem::size_of::<*const u8>())
									.cast::<i64>();
								let l13 = *base
									.add(16 + 2 * ::core::mem::size_of::<*const u8>())
									.cast::<i64>();
								Listed {
									key: _rt::string_lift(bytes10),
									size: l11 as u64,
									age: l12 as u64,
									max_age: l13 as u64,
								}
							};
							result14.push(e14);
						}
						_rt::cabi_dealloc(
							base14,
							len14 * (24 + 2 * ::core::mem::size_of::<*const u8>()),
							8,
						);
						result14
					};
					Ok(e)
				}
				1 => {
					let e = {
						let l15 = i32::from(
							*ptr3.add(::core::mem::size_of::<*const u8>()).cast::<u8>(),
						);
						Error::_lift(l15 as u8)
					};
					Err(e)
				}
				_ => _rt::invalid_enum_discriminant(),
			};
			result16
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Forgets all entries of a scope that were there when it was called, and returns how many. Those that are being written
	/// are read to their end by who joined, and not kept; by a tag, also those whose tags are not known yet. The node looks
	/// at 1,024 entries at a time, between which others use the cache. It goes on if the instance ends.
	///
	/// Errors: `invalid`; `busy` while another purge of the module goes on; `unavailable`.
	#[allow(async_fn_in_trait)]
	pub fn purge(scope: &Scope) -> Result<u64, Error> {
		unsafe {
			#[repr(align(8))]
			struct RetArea([::core::mem::MaybeUninit<u8>; 16]);
			let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 16]);
			let (result2_0, result2_1, result2_2) = match scope {
				Scope::Prefix(e) => {
					let vec0 = e;
					let ptr0 = vec0.as_ptr().cast::<u8>();
					let len0 = vec0.len();
					(0i32, ptr0.cast_mut(), len0)
				}
				Scope::Tag(e) => {
					let vec1 = e;
					let ptr1 = vec1.as_ptr().cast::<u8>();
					let len1 = vec1.len();
					(1i32, ptr1.cast_mut(), len1)
				}
			};
			let ptr3 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:cache/entries@1.1.0")]
			unsafe extern "C" {
				#[link_name = "purge"]
				fn wit_import4(_: i32, _: *mut u8, _: usize, _: *mut u8);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import4(_: i32, _: *mut u8, _: usize, _: *mut u8) {
				unreachable!()
			}
			wit_import4(result2_0, result2_1, result2_2, ptr3);
			let l5 = i32::from(*ptr3.add(0).cast::<u8>());
			let result8 = match l5 {
				0 => {
					let e = {
						let l6 = *ptr3.add(8).cast::<i64>();
						l6 as u64
					};
					Ok(e)
				}
				1 => {
					let e = {
						let l7 = i32::from(*ptr3.add(8).cast::<u8>());
						Error::_lift(l7 as u8)
					};
					Err(e)
				}
				_ => _rt::invalid_enum_discriminant(),
			};
			result8
		}
	}
}
