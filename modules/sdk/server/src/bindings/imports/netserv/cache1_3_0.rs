// SPDX-License-Identifier: Apache-2.0
// Made from wit/ by `./dev bindings`.

/// Entries that a module has read.
#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
pub mod read {
	#[used]
	#[doc(hidden)]
	static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
	use super::super::super::_rt;
	pub type Details = super::super::super::netserv::cache1_1_0::entries::Details;
	pub type Error = super::super::super::netserv::cache1_1_0::entries::Error;
	pub type Reader = super::super::super::netserv::cache1_1_0::entries::Reader;
	#[allow(unused_unsafe, clippy::all)]
	/// Says something else of the entry that a reader has, whose body stays as it is, and whose age begins again. Returns whether it did: not
	/// if the entry was removed, replaced or updated since it was opened, or was not whole then.
	///
	/// Errors: those of `entries.update`.
	#[allow(async_fn_in_trait)]
	pub fn update(reader: &Reader, details: &Details) -> Result<bool, Error> {
		unsafe {
			#[repr(align(1))]
			struct RetArea([::core::mem::MaybeUninit<u8>; 2]);
			let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 2]);
			let super::super::super::netserv::cache1_1_0::entries::Details {
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
				let base = result5.add(i * (2 * ::core::mem::size_of::<*const u8>()));
				{
					let vec4 = e;
					let ptr4 = vec4.as_ptr().cast::<u8>();
					let len4 = vec4.len();
					*base.add(::core::mem::size_of::<*const u8>()).cast::<usize>() = len4;
					*base.add(0).cast::<*mut u8>() = ptr4.cast_mut();
				}
			}
			let ptr6 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:cache/read@1.3.0")]
			unsafe extern "C" {
				#[link_name = "update"]
				fn wit_import7(
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
					_: *mut u8,
				);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import7(
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
				_: *mut u8,
			) {
				unreachable!()
			}
			wit_import7(
				(reader).handle() as i32,
				ptr1.cast_mut(),
				len1,
				ptr2.cast_mut(),
				len2,
				_rt::as_i64(max_age0),
				ptr3.cast_mut(),
				len3,
				result5,
				len5,
				ptr6,
			);
			let l8 = i32::from(*ptr6.add(0).cast::<u8>());
			let result11 = match l8 {
				0 => {
					let e = {
						let l9 = i32::from(*ptr6.add(1).cast::<u8>());
						_rt::bool_lift(l9 as u8)
					};
					Ok(e)
				}
				1 => {
					let e = {
						let l10 = i32::from(*ptr6.add(1).cast::<u8>());
						super::super::super::netserv::cache1_1_0::entries::Error::_lift(
							l10 as u8,
						)
					};
					Err(e)
				}
				_ => _rt::invalid_enum_discriminant(),
			};
			result11
		}
	}
}
