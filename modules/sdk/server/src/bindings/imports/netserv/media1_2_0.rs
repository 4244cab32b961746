// SPDX-License-Identifier: Apache-2.0
// Made from wit/ by `./dev bindings`.

/// Live jobs that give pictures one behind the other, each whole in itself, and whose begin nobody waits for.
#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
pub mod pictures {
	#[used]
	#[doc(hidden)]
	static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
	use super::super::super::_rt;
	pub type Pollable = super::super::super::wasi::io::poll::Pollable;
	pub type Error = super::super::super::netserv::media1_0_0::media::Error;
	pub type Source = super::super::super::netserv::media1_0_0::media::Source;
	pub type Job = super::super::super::netserv::media1_1_0::jobs::Job;
	pub type Live = super::super::super::netserv::media1_1_0::jobs::Live;
	/// How pictures are coded.
	#[derive(Clone, Copy)]
	pub enum Look {
		/// JPEG, from 1 for the best to 31 for the smallest.
		Jpeg(u32),
		/// JPEG without colours, likewise.
		GreyJpeg(u32),
		/// PNG with all colours.
		Png,
		/// PNG without colours, of 8 bits a pixel.
		GreyPng,
		/// PNG in which each pixel is the number of one of 256 colours, which are the same in all pictures of all jobs: number
		/// 36 r + 6 g + b has the red 51 r, the green 51 g and the blue 51 b, with r, g and b from 0 to 5; those from 216 on
		/// are 40 greys from black to white.
		PalettePng,
	}
	impl ::core::fmt::Debug for Look {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			match self {
				Look::Jpeg(e) => f.debug_tuple("Look::Jpeg").field(e).finish(),
				Look::GreyJpeg(e) => f.debug_tuple("Look::GreyJpeg").field(e).finish(),
				Look::Png => f.debug_tuple("Look::Png").finish(),
				Look::GreyPng => f.debug_tuple("Look::GreyPng").finish(),
				Look::PalettePng => f.debug_tuple("Look::PalettePng").finish(),
			}
		}
	}
	/// One output: pictures with nothing between, in front of the first and behind the last. They have no sound.
	#[repr(C)]
	#[derive(Clone, Copy)]
	pub struct View {
		/// They are as large as fits into this, in the form in which the input is to be shown. Even, at most 3840 × 2160.
		pub width: u32,
		pub height: u32,
		/// So many of the input's pictures are taken in a second, 1 to 60; fewer if it has fewer. No picture comes twice.
		pub per_second: u32,
		pub look: Look,
	}
	impl ::core::fmt::Debug for View {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			f.debug_struct("View")
				.field("width", &self.width)
				.field("height", &self.height)
				.field("per-second", &self.per_second)
				.field("look", &self.look)
				.finish()
		}
	}
	/// A job that waits for its turn, or runs. Dropping it gives it up.
	#[derive(Debug)]
	#[repr(transparent)]
	pub struct Begun {
		handle: _rt::Resource<Begun>,
	}
	impl Begun {
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
	unsafe impl _rt::WasmResource for Begun {
		#[inline]
		unsafe fn drop(_handle: u32) {
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:media/pictures@1.2.0")]
			unsafe extern "C" {
				#[link_name = "[resource-drop]begun"]
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
	impl Begun {
		#[allow(unused_unsafe, clippy::all)]
		/// Returns what is ready once the job runs, or it is known that it never will.
		#[allow(async_fn_in_trait)]
		pub fn subscribe(&self) -> Pollable {
			unsafe {
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "netserv:media/pictures@1.2.0")]
				unsafe extern "C" {
					#[link_name = "[method]begun.subscribe"]
					fn wit_import0(_: i32) -> i32;
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import0(_: i32) -> i32 {
					unreachable!()
				}
				let ret = wit_import0((self).handle() as i32);
				super::super::super::wasi::io::poll::Pollable::from_handle(ret as u32)
			}
		}
	}
	impl Begun {
		#[allow(unused_unsafe, clippy::all)]
		/// Returns the job; waits for its turn unless that is known.
		#[allow(async_fn_in_trait)]
		pub fn job(this: Begun) -> Result<Job, Error> {
			unsafe {
				#[cfg_attr(target_pointer_width = "64", repr(align(8)))]
				#[cfg_attr(target_pointer_width = "32", repr(align(4)))]
				struct RetArea(
					[::core::mem::MaybeUninit<
						u8,
					>; 4 * ::core::mem::size_of::<*const u8>()],
				);
				let mut ret_area = RetArea(
					[::core::mem::MaybeUninit::uninit(); 4
						* ::core::mem::size_of::<*const u8>()],
				);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "netserv:media/pictures@1.2.0")]
				unsafe extern "C" {
					#[link_name = "[static]begun.job"]
					fn wit_import1(_: i32, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: *mut u8) {
					unreachable!()
				}
				wit_import1((&this).take_handle() as i32, ptr0);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				let result18 = match l2 {
					0 => {
						let e = {
							let l3 = *ptr0
								.add(::core::mem::size_of::<*const u8>())
								.cast::<i32>();
							super::super::super::netserv::media1_1_0::jobs::Job::from_handle(
								l3 as u32,
							)
						};
						Ok(e)
					}
					1 => {
						let e = {
							let l4 = i32::from(
								*ptr0.add(::core::mem::size_of::<*const u8>()).cast::<u8>(),
							);
							use super::super::super::netserv::media1_0_0::media::Error as V17;
							let v17 = match l4 {
								0 => {
									let e17 = {
										let l5 = *ptr0
											.add(2 * ::core::mem::size_of::<*const u8>())
											.cast::<*mut u8>();
										let l6 = *ptr0
											.add(3 * ::core::mem::size_of::<*const u8>())
											.cast::<usize>();
										let len7 = l6;
										let bytes7 = _rt::Vec::from_raw_parts(
											l5.cast(),
											len7,
											len7,
										);
										_rt::string_lift(bytes7)
									};
									V17::Invalid(e17)
								}
								1 => V17::Busy,
								2 => {
									let e17 = {
										let l8 = *ptr0
											.add(2 * ::core::mem::size_of::<*const u8>())
											.cast::<*mut u8>();
										let l9 = *ptr0
											.add(3 * ::core::mem::size_of::<*const u8>())
											.cast::<usize>();
										let len10 = l9;
										let bytes10 = _rt::Vec::from_raw_parts(
											l8.cast(),
											len10,
											len10,
										);
										_rt::string_lift(bytes10)
									};
									V17::Failed(e17)
								}
								3 => {
									let e17 = {
										let l11 = *ptr0
											.add(2 * ::core::mem::size_of::<*const u8>())
											.cast::<*mut u8>();
										let l12 = *ptr0
											.add(3 * ::core::mem::size_of::<*const u8>())
											.cast::<usize>();
										let len13 = l12;
										let bytes13 = _rt::Vec::from_raw_parts(
											l11.cast(),
											len13,
											len13,
										);
										_rt::string_lift(bytes13)
									};
									V17::Limit(e17)
								}
								n => {
									debug_assert_eq!(n, 4, "invalid enum discriminant");
									let e17 = {
										let l14 = *ptr0
											.add(2 * ::core::mem::size_of::<*const u8>())
											.cast::<*mut u8>();
										let l15 = *ptr0
											.add(3 * ::core::mem::size_of::<*const u8>())
											.cast::<usize>();
										let len16 = l15;
										let bytes16 = _rt::Vec::from_raw_parts(
											l14.cast(),
											len16,
											len16,
										);
										_rt::string_lift(bytes16)
									};
									V17::Unavailable(e17)
								}
							};
							v17
						};
						Err(e)
					}
					_ => _rt::invalid_enum_discriminant(),
				};
				result18
			}
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Begins a live job, for 1 to 4 views of one decoding, and does not wait for its turn. Bounds are those of
	/// `netserv:media/jobs`.
	#[allow(async_fn_in_trait)]
	pub fn begin(source: Source, live: Live, views: &[View]) -> Result<Begun, Error> {
		unsafe {
			#[cfg_attr(target_pointer_width = "64", repr(align(8)))]
			#[cfg_attr(target_pointer_width = "32", repr(align(4)))]
			struct RetArea(
				[::core::mem::MaybeUninit<u8>; 4 * ::core::mem::size_of::<*const u8>()],
			);
			let mut ret_area = RetArea(
				[::core::mem::MaybeUninit::uninit(); 4
					* ::core::mem::size_of::<*const u8>()],
			);
			let super::super::super::netserv::media1_1_0::jobs::Live {
				cpu_permille: cpu_permille0,
				keep_times: keep_times0,
			} = live;
			let vec2 = views;
			let len2 = vec2.len();
			let layout2 = _rt::alloc::Layout::from_size_align(vec2.len() * 20, 4)
				.unwrap();
			let (result2, _cleanup2) = wit_bindgen::rt::Cleanup::new(layout2);
			for (i, e) in vec2.into_iter().enumerate() {
				let base = result2.add(i * 20);
				{
					let View {
						width: width1,
						height: height1,
						per_second: per_second1,
						look: look1,
					} = e;
					*base.add(0).cast::<i32>() = _rt::as_i32(width1);
					*base.add(4).cast::<i32>() = _rt::as_i32(height1);
					*base.add(8).cast::<i32>() = _rt::as_i32(per_second1);
					match look1 {
						Look::Jpeg(e) => {
							*base.add(12).cast::<u8>() = (0i32) as u8;
							*base.add(16).cast::<i32>() = _rt::as_i32(e);
						}
						Look::GreyJpeg(e) => {
							*base.add(12).cast::<u8>() = (1i32) as u8;
							*base.add(16).cast::<i32>() = _rt::as_i32(e);
						}
						Look::Png => {
							*base.add(12).cast::<u8>() = (2i32) as u8;
						}
						Look::GreyPng => {
							*base.add(12).cast::<u8>() = (3i32) as u8;
						}
						Look::PalettePng => {
							*base.add(12).cast::<u8>() = (4i32) as u8;
						}
					}
				}
			}
			let ptr3 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:media/pictures@1.2.0")]
			unsafe extern "C" {
				#[link_name = "begin"]
				fn wit_import4(_: i32, _: i32, _: i32, _: *mut u8, _: usize, _: *mut u8);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import4(
				_: i32,
				_: i32,
				_: i32,
				_: *mut u8,
				_: usize,
				_: *mut u8,
			) {
				unreachable!()
			}
			wit_import4(
				source.clone() as i32,
				_rt::as_i32(cpu_permille0),
				match keep_times0 {
					true => 1,
					false => 0,
				},
				result2,
				len2,
				ptr3,
			);
			let l5 = i32::from(*ptr3.add(0).cast::<u8>());
			let result21 = match l5 {
				0 => {
					let e = {
						let l6 = *ptr3
							.add(::core::mem::size_of::<*const u8>())
							.cast::<i32>();
						Begun::from_handle(l6 as u32)
					};
					Ok(e)
				}
				1 => {
					let e = {
						let l7 = i32::from(
							*ptr3.add(::core::mem::size_of::<*const u8>()).cast::<u8>(),
						);
						use super::super::super::netserv::media1_0_0::media::Error as V20;
						let v20 = match l7 {
							0 => {
								let e20 = {
									let l8 = *ptr3
										.add(2 * ::core::mem::size_of::<*const u8>())
										.cast::<*mut u8>();
									let l9 = *ptr3
										.add(3 * ::core::mem::size_of::<*const u8>())
										.cast::<usize>();
									let len10 = l9;
									let bytes10 = _rt::Vec::from_raw_parts(
										l8.cast(),
										len10,
										len10,
									);
									_rt::string_lift(bytes10)
								};
								V20::Invalid(e20)
							}
							1 => V20::Busy,
							2 => {
								let e20 = {
									let l11 = *ptr3
										.add(2 * ::core::mem::size_of::<*const u8>())
										.cast::<*mut u8>();
									let l12 = *ptr3
										.add(3 * ::core::mem::size_of::<*const u8>())
										.cast::<usize>();
									let len13 = l12;
									let bytes13 = _rt::Vec::from_raw_parts(
										l11.cast(),
										len13,
										len13,
									);
									_rt::string_lift(bytes13)
								};
								V20::Failed(e20)
							}
							3 => {
								let e20 = {
									let l14 = *ptr3
										.add(2 * ::core::mem::size_of::<*const u8>())
										.cast::<*mut u8>();
									let l15 = *ptr3
										.add(3 * ::core::mem::size_of::<*const u8>())
										.cast::<usize>();
									let len16 = l15;
									let bytes16 = _rt::Vec::from_raw_parts(
										l14.cast(),
										len16,
										len16,
									);
									_rt::string_lift(bytes16)
								};
								V20::Limit(e20)
							}
							n => {
								debug_assert_eq!(n, 4, "invalid enum discriminant");
								let e20 = {
									let l17 = *ptr3
										.add(2 * ::core::mem::size_of::<*const u8>())
										.cast::<*mut u8>();
									let l18 = *ptr3
										.add(3 * ::core::mem::size_of::<*const u8>())
										.cast::<usize>();
									let len19 = l18;
									let bytes19 = _rt::Vec::from_raw_parts(
										l17.cast(),
										len19,
										len19,
									);
									_rt::string_lift(bytes19)
								};
								V20::Unavailable(e20)
							}
						};
						v20
					};
					Err(e)
				}
				_ => _rt::invalid_enum_discriminant(),
			};
			result21
		}
	}
}
