// SPDX-License-Identifier: Apache-2.0
// Made from wit/ by `./dev bindings`.

/// Search for bytes: the block `match`. Calls take at most 1 MiB to search.
#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
pub mod search {
	#[used]
	#[doc(hidden)]
	static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
	use super::super::super::_rt;
	/// Where a pattern was found.
	#[repr(C)]
	#[derive(Clone, Copy)]
	pub struct Hit {
		/// The number of the pattern in the list.
		pub pattern: u32,
		/// The offset of its first byte.
		pub start: u32,
		/// The offset behind its last byte.
		pub end: u32,
	}
	impl ::core::fmt::Debug for Hit {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			f.debug_struct("Hit")
				.field("pattern", &self.pattern)
				.field("start", &self.start)
				.field("end", &self.end)
				.finish()
		}
	}
	/// Why there is no result.
	#[repr(u8)]
	#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
	pub enum Error {
		/// More than 4,096 patterns or 128 KiB of them in a set, or more than 16 sets at a time, or 16 MiB of memory for
		/// those of all instances of the module.
		Quota,
		/// More than 1 MiB to search, or a pattern of more than 1,024 bytes.
		TooLarge,
		/// An empty needle, an empty pattern, or none at all.
		Invalid,
	}
	impl Error {
		pub fn name(&self) -> &'static str {
			match self {
				Error::Quota => "quota",
				Error::TooLarge => "too-large",
				Error::Invalid => "invalid",
			}
		}
		pub fn message(&self) -> &'static str {
			match self {
				Error::Quota => {
					"More than 4,096 patterns or 128 KiB of them in a set, or more than 16 sets at a time, or 16 MiB of memory for
			  those of all instances of the module."
				}
				Error::TooLarge => {
					"More than 1 MiB to search, or a pattern of more than 1,024 bytes."
				}
				Error::Invalid => "An empty needle, an empty pattern, or none at all.",
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
				2 => Error::Invalid,
				_ => panic!("invalid enum discriminant"),
			}
		}
	}
	/// Many patterns that are looked for at once.
	#[derive(Debug)]
	#[repr(transparent)]
	pub struct Patterns {
		handle: _rt::Resource<Patterns>,
	}
	impl Patterns {
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
	unsafe impl _rt::WasmResource for Patterns {
		#[inline]
		unsafe fn drop(_handle: u32) {
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:search/search@1.0.0")]
			unsafe extern "C" {
				#[link_name = "[resource-drop]patterns"]
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
	#[allow(unused_unsafe, clippy::all)]
	/// Returns the offset of the first `needle`.
	#[allow(async_fn_in_trait)]
	pub fn find(haystack: &[u8], needle: &[u8]) -> Result<Option<u32>, Error> {
		unsafe {
			#[repr(align(4))]
			struct RetArea([::core::mem::MaybeUninit<u8>; 12]);
			let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 12]);
			let vec0 = haystack;
			let ptr0 = vec0.as_ptr().cast::<u8>();
			let len0 = vec0.len();
			let vec1 = needle;
			let ptr1 = vec1.as_ptr().cast::<u8>();
			let len1 = vec1.len();
			let ptr2 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:search/search@1.0.0")]
			unsafe extern "C" {
				#[link_name = "find"]
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
			let result8 = match l4 {
				0 => {
					let e = {
						let l5 = i32::from(*ptr2.add(4).cast::<u8>());
						match l5 {
							0 => None,
							1 => {
								let e = {
									let l6 = *ptr2.add(8).cast::<i32>();
									l6 as u32
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
						let l7 = i32::from(*ptr2.add(4).cast::<u8>());
						Error::_lift(l7 as u8)
					};
					Err(e)
				}
				_ => _rt::invalid_enum_discriminant(),
			};
			result8
		}
	}
	impl Patterns {
		#[allow(unused_unsafe, clippy::all)]
		/// Prepares patterns; where several begin at one place, the longest is found.
		#[allow(async_fn_in_trait)]
		pub fn compile(
			patterns: &[_rt::Vec<u8>],
			ignore_ascii_case: bool,
		) -> Result<Patterns, Error> {
			unsafe {
				#[repr(align(4))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 8]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 8]);
				let vec1 = patterns;
				let len1 = vec1.len();
				let layout1 = _rt::alloc::Layout::from_size_align(
						vec1.len() * (2 * ::core::mem::size_of::<*const u8>()),
						::core::mem::size_of::<*const u8>(),
					)
					.unwrap();
				let (result1, _cleanup1) = wit_bindgen::rt::Cleanup::new(layout1);
				for (i, e) in vec1.into_iter().enumerate() {
					let base = result1
						.add(i * (2 * ::core::mem::size_of::<*const u8>()));
					{
						let vec0 = e;
						let ptr0 = vec0.as_ptr().cast::<u8>();
						let len0 = vec0.len();
						*base.add(::core::mem::size_of::<*const u8>()).cast::<usize>() = len0;
						*base.add(0).cast::<*mut u8>() = ptr0.cast_mut();
					}
				}
				let ptr2 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "netserv:search/search@1.0.0")]
				unsafe extern "C" {
					#[link_name = "[static]patterns.compile"]
					fn wit_import3(_: *mut u8, _: usize, _: i32, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import3(
					_: *mut u8,
					_: usize,
					_: i32,
					_: *mut u8,
				) {
					unreachable!()
				}
				wit_import3(
					result1,
					len1,
					match &ignore_ascii_case {
						true => 1,
						false => 0,
					},
					ptr2,
				);
				let l4 = i32::from(*ptr2.add(0).cast::<u8>());
				let result7 = match l4 {
					0 => {
						let e = {
							let l5 = *ptr2.add(4).cast::<i32>();
							Patterns::from_handle(l5 as u32)
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
	}
	impl Patterns {
		#[allow(unused_unsafe, clippy::all)]
		/// Returns whether one of the patterns is there.
		#[allow(async_fn_in_trait)]
		pub fn is_match(&self, haystack: &[u8]) -> Result<bool, Error> {
			unsafe {
				#[repr(align(1))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 2]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 2]);
				let vec0 = haystack;
				let ptr0 = vec0.as_ptr().cast::<u8>();
				let len0 = vec0.len();
				let ptr1 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "netserv:search/search@1.0.0")]
				unsafe extern "C" {
					#[link_name = "[method]patterns.is-match"]
					fn wit_import2(_: i32, _: *mut u8, _: usize, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import2(
					_: i32,
					_: *mut u8,
					_: usize,
					_: *mut u8,
				) {
					unreachable!()
				}
				wit_import2((self).handle() as i32, ptr0.cast_mut(), len0, ptr1);
				let l3 = i32::from(*ptr1.add(0).cast::<u8>());
				let result6 = match l3 {
					0 => {
						let e = {
							let l4 = i32::from(*ptr1.add(1).cast::<u8>());
							_rt::bool_lift(l4 as u8)
						};
						Ok(e)
					}
					1 => {
						let e = {
							let l5 = i32::from(*ptr1.add(1).cast::<u8>());
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
	impl Patterns {
		#[allow(unused_unsafe, clippy::all)]
		/// Returns up to `max`, at most 1,024, hits that do not overlap, from left to right.
		#[allow(async_fn_in_trait)]
		pub fn find(&self, haystack: &[u8], max: u32) -> Result<_rt::Vec<Hit>, Error> {
			unsafe {
				#[cfg_attr(target_pointer_width = "64", repr(align(8)))]
				#[cfg_attr(target_pointer_width = "32", repr(align(4)))]
				struct RetArea(
					[::core::mem::MaybeUninit<
						u8,
					>; 3 * ::core::mem::size_of::<*const u8>()],
				);
				let mut ret_area = RetArea(
					[::core::mem::MaybeUninit::uninit(); 3
						* ::core::mem::size_of::<*const u8>()],
				);
				let vec0 = haystack;
				let ptr0 = vec0.as_ptr().cast::<u8>();
				let len0 = vec0.len();
				let ptr1 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "netserv:search/search@1.0.0")]
				unsafe extern "C" {
					#[link_name = "[method]patterns.find"]
					fn wit_import2(_: i32, _: *mut u8, _: usize, _: i32, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import2(
					_: i32,
					_: *mut u8,
					_: usize,
					_: i32,
					_: *mut u8,
				) {
					unreachable!()
				}
				wit_import2(
					(self).handle() as i32,
					ptr0.cast_mut(),
					len0,
					_rt::as_i32(&max),
					ptr1,
				);
				let l3 = i32::from(*ptr1.add(0).cast::<u8>());
				let result8 = match l3 {
					0 => {
						let e = {
							let l4 = *ptr1
								.add(::core::mem::size_of::<*const u8>())
								.cast::<*mut u8>();
							let l5 = *ptr1
								.add(2 * ::core::mem::size_of::<*const u8>())
								.cast::<usize>();
							let len6 = l5;
							<_ as From<
								_rt::Vec<_>,
							>>::from(_rt::Vec::from_raw_parts(l4.cast(), len6, len6))
						};
						Ok(e)
					}
					1 => {
						let e = {
							let l7 = i32::from(
								*ptr1.add(::core::mem::size_of::<*const u8>()).cast::<u8>(),
							);
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
}
