// SPDX-License-Identifier: Apache-2.0
// Made from wit/ by `./dev bindings`.

/// The module's counters, shown by `netserv node list` and in the node's metrics. Both parts of a module share them.
#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
pub mod counters {
	#[used]
	#[doc(hidden)]
	static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
	use super::super::super::_rt;
	/// Why nothing was done.
	#[repr(u8)]
	#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
	pub enum Error {
		/// The module's counters are used up.
		Quota,
		/// A name that is empty, longer than 64 bytes, or not printable.
		Invalid,
	}
	impl Error {
		pub fn name(&self) -> &'static str {
			match self {
				Error::Quota => "quota",
				Error::Invalid => "invalid",
			}
		}
		pub fn message(&self) -> &'static str {
			match self {
				Error::Quota => "The module's counters are used up.",
				Error::Invalid => {
					"A name that is empty, longer than 64 bytes, or not printable."
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
				1 => Error::Invalid,
				_ => panic!("invalid enum discriminant"),
			}
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Adds to a counter, wrapping; made at 0 if need be.
	#[allow(async_fn_in_trait)]
	pub fn add(name: &str, amount: u64) -> Result<(), Error> {
		unsafe {
			#[repr(align(1))]
			struct RetArea([::core::mem::MaybeUninit<u8>; 2]);
			let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 2]);
			let vec0 = name;
			let ptr0 = vec0.as_ptr().cast::<u8>();
			let len0 = vec0.len();
			let ptr1 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:metrics/counters@1.0.0")]
			unsafe extern "C" {
				#[link_name = "add"]
				fn wit_import2(_: *mut u8, _: usize, _: i64, _: *mut u8);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import2(_: *mut u8, _: usize, _: i64, _: *mut u8) {
				unreachable!()
			}
			wit_import2(ptr0.cast_mut(), len0, _rt::as_i64(&amount), ptr1);
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
	/// Sets a counter.
	#[allow(async_fn_in_trait)]
	pub fn set(name: &str, value: u64) -> Result<(), Error> {
		unsafe {
			#[repr(align(1))]
			struct RetArea([::core::mem::MaybeUninit<u8>; 2]);
			let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 2]);
			let vec0 = name;
			let ptr0 = vec0.as_ptr().cast::<u8>();
			let len0 = vec0.len();
			let ptr1 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:metrics/counters@1.0.0")]
			unsafe extern "C" {
				#[link_name = "set"]
				fn wit_import2(_: *mut u8, _: usize, _: i64, _: *mut u8);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import2(_: *mut u8, _: usize, _: i64, _: *mut u8) {
				unreachable!()
			}
			wit_import2(ptr0.cast_mut(), len0, _rt::as_i64(&value), ptr1);
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
	/// Returns a counter's value; 0 if there is none.
	#[allow(async_fn_in_trait)]
	pub fn get(name: &str) -> u64 {
		unsafe {
			let vec0 = name;
			let ptr0 = vec0.as_ptr().cast::<u8>();
			let len0 = vec0.len();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:metrics/counters@1.0.0")]
			unsafe extern "C" {
				#[link_name = "get"]
				fn wit_import1(_: *mut u8, _: usize) -> i64;
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import1(_: *mut u8, _: usize) -> i64 {
				unreachable!()
			}
			let ret = wit_import1(ptr0.cast_mut(), len0);
			ret as u64
		}
	}
}
