// SPDX-License-Identifier: Apache-2.0
// Made from wit/ by `./dev bindings`.

/// The properties of the SETUP, over those of the manifest.
#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
pub mod properties {
	#[used]
	#[doc(hidden)]
	static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
	use super::super::super::_rt;
	#[allow(unused_unsafe, clippy::all)]
	/// Returns one.
	#[allow(async_fn_in_trait)]
	pub fn get(key: &str) -> Option<_rt::String> {
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
			let vec0 = key;
			let ptr0 = vec0.as_ptr().cast::<u8>();
			let len0 = vec0.len();
			let ptr1 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:properties/properties@1.0.0")]
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
				0 => None,
				1 => {
					let e = {
						let l4 = *ptr1
							.add(::core::mem::size_of::<*const u8>())
							.cast::<*mut u8>();
						let l5 = *ptr1
							.add(2 * ::core::mem::size_of::<*const u8>())
							.cast::<usize>();
						let len6 = l5;
						let bytes6 = _rt::Vec::from_raw_parts(l4.cast(), len6, len6);
						_rt::string_lift(bytes6)
					};
					Some(e)
				}
				_ => _rt::invalid_enum_discriminant(),
			};
			result7
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Returns all, by name.
	#[allow(async_fn_in_trait)]
	pub fn all() -> _rt::Vec<(_rt::String, _rt::String)> {
		unsafe {
			#[cfg_attr(target_pointer_width = "64", repr(align(8)))]
			#[cfg_attr(target_pointer_width = "32", repr(align(4)))]
			struct RetArea(
				[::core::mem::MaybeUninit<u8>; 2 * ::core::mem::size_of::<*const u8>()],
			);
			let mut ret_area = RetArea(
				[::core::mem::MaybeUninit::uninit(); 2
					* ::core::mem::size_of::<*const u8>()],
			);
			let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:properties/properties@1.0.0")]
			unsafe extern "C" {
				#[link_name = "all"]
				fn wit_import1(_: *mut u8);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import1(_: *mut u8) {
				unreachable!()
			}
			wit_import1(ptr0);
			let l2 = *ptr0.add(0).cast::<*mut u8>();
			let l3 = *ptr0.add(::core::mem::size_of::<*const u8>()).cast::<usize>();
			let base10 = l2;
			let len10 = l3;
			let mut result10 = _rt::Vec::with_capacity(len10);
			for i in 0..len10 {
				let base = base10.add(i * (4 * ::core::mem::size_of::<*const u8>()));
				let e10 = {
					let l4 = *base.add(0).cast::<*mut u8>();
					let l5 = *base
						.add(::core::mem::size_of::<*const u8>())
						.cast::<usize>();
					let len6 = l5;
					let bytes6 = _rt::Vec::from_raw_parts(l4.cast(), len6, len6);
					let l7 = *base
						.add(2 * ::core::mem::size_of::<*const u8>())
						.cast::<*mut u8>();
					let l8 = *base
						.add(3 * ::core::mem::size_of::<*const u8>())
						.cast::<usize>();
					let len9 = l8;
					let bytes9 = _rt::Vec::from_raw_parts(l7.cast(), len9, len9);
					(_rt::string_lift(bytes6), _rt::string_lift(bytes9))
				};
				result10.push(e10);
			}
			_rt::cabi_dealloc(
				base10,
				len10 * (4 * ::core::mem::size_of::<*const u8>()),
				::core::mem::size_of::<*const u8>(),
			);
			let result11 = result10;
			result11
		}
	}
}
