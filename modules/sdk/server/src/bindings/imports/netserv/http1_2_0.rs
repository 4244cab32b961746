// SPDX-License-Identifier: Apache-2.0
// Made from wit/ by `./dev bindings`.

/// `netserv:http/hits`, with a counter for bytes.
#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
pub mod counted_hits {
	#[used]
	#[doc(hidden)]
	static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
	use super::super::super::_rt;
	pub type Reader = super::super::super::netserv::cache1_1_0::entries::Reader;
	pub type Answer = super::super::super::netserv::http1_1_0::hits::Answer;
	pub type Error = super::super::super::netserv::http1_1_0::hits::Error;
	pub type Target = super::super::super::netserv::http1_1_0::hits::Target;
	#[allow(unused_unsafe, clippy::all)]
	/// Does what `put` of `hits` does, and has the bytes of each body that the node sends then be added to a counter of the module's
	/// (`netserv:metrics`), as soon as it begins to send it. `HEAD` adds none. With an empty name they are not counted.
	///
	/// Errors: those of `hits`; `quota` also if the module has as many counters as it may, `invalid` if the name is none of one.
	#[allow(async_fn_in_trait)]
	pub fn put(
		target: &Target,
		answer: &Answer,
		bytes_counter: &str,
		entry: &Reader,
	) -> Result<(), Error> {
		unsafe {
			#[repr(align(1))]
			struct RetArea([::core::mem::MaybeUninit<u8>; 2]);
			let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 2]);
			let super::super::super::netserv::http1_1_0::hits::Target {
				authority: authority0,
				path_with_query: path_with_query0,
			} = target;
			let vec1 = authority0;
			let ptr1 = vec1.as_ptr().cast::<u8>();
			let len1 = vec1.len();
			let vec2 = path_with_query0;
			let ptr2 = vec2.as_ptr().cast::<u8>();
			let len2 = vec2.len();
			let super::super::super::netserv::http1_1_0::hits::Answer {
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
			let vec11 = bytes_counter;
			let ptr11 = vec11.as_ptr().cast::<u8>();
			let len11 = vec11.len();
			let ptr12 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:http/counted-hits@1.2.0")]
			unsafe extern "C" {
				#[link_name = "put"]
				fn wit_import13(
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
					_: *mut u8,
					_: usize,
					_: i32,
					_: *mut u8,
				);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import13(
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
				_: *mut u8,
				_: usize,
				_: i32,
				_: *mut u8,
			) {
				unreachable!()
			}
			wit_import13(
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
				ptr11.cast_mut(),
				len11,
				(entry).handle() as i32,
				ptr12,
			);
			let l14 = i32::from(*ptr12.add(0).cast::<u8>());
			let result16 = match l14 {
				0 => {
					let e = ();
					Ok(e)
				}
				1 => {
					let e = {
						let l15 = i32::from(*ptr12.add(1).cast::<u8>());
						super::super::super::netserv::http1_1_0::hits::Error::_lift(
							l15 as u8,
						)
					};
					Err(e)
				}
				_ => _rt::invalid_enum_discriminant(),
			};
			result16
		}
	}
}
