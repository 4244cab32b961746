// SPDX-License-Identifier: Apache-2.0
// Made from wit/ by `./dev bindings`.

/// Jobs with several outputs, that begin in the middle of an input or go on as long as it comes.
#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
pub mod jobs {
	#[used]
	#[doc(hidden)]
	static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
	use super::super::super::_rt;
	pub type InputStream = super::super::super::wasi::io::streams::InputStream;
	pub type OutputStream = super::super::super::wasi::io::streams::OutputStream;
	pub type Error = super::super::super::netserv::media1_0_0::media::Error;
	pub type Source = super::super::super::netserv::media1_0_0::media::Source;
	pub type Format = super::super::super::netserv::media1_0_0::media::Format;
	pub type VideoCodec = super::super::super::netserv::media1_0_0::media::VideoCodec;
	pub type AudioCodec = super::super::super::netserv::media1_0_0::media::AudioCodec;
	pub type Overlay = super::super::super::netserv::media1_0_0::media::Overlay;
	pub type Corner = super::super::super::netserv::media1_0_0::media::Corner;
	/// Where an output has key frames, with which a segment of it can begin: MPEG-TS has its tables there, fragments of MP4
	/// begin there.
	#[derive(Clone, Copy)]
	pub enum Segments {
		/// Where the coder likes.
		Free,
		/// Every so many milliseconds, 200 to 60,000, and nowhere else.
		Every(u32),
		/// Where the input has them, and nowhere else. The outputs of two jobs have them at the same pictures, so that one
		/// can go on for the other.
		Source,
	}
	impl ::core::fmt::Debug for Segments {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			match self {
				Segments::Free => f.debug_tuple("Segments::Free").finish(),
				Segments::Every(e) => f.debug_tuple("Segments::Every").field(e).finish(),
				Segments::Source => f.debug_tuple("Segments::Source").finish(),
			}
		}
	}
	/// One output. Bounds are those of `netserv:media/media.settings`.
	#[derive(Clone)]
	pub struct Output {
		pub format: Format,
		pub video: VideoCodec,
		pub audio: AudioCodec,
		pub width: u32,
		pub height: u32,
		/// Bits per second of moving pictures; 0: by quality, which live jobs do not have.
		pub video_bit_rate: u32,
		pub audio_bit_rate: u32,
		/// Whether pictures lose their colours.
		pub grey: bool,
		pub segments: Segments,
		/// The same for all outputs that have one, but for the corner.
		pub overlay: Option<(Overlay, Corner)>,
	}
	impl ::core::fmt::Debug for Output {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			f.debug_struct("Output")
				.field("format", &self.format)
				.field("video", &self.video)
				.field("audio", &self.audio)
				.field("width", &self.width)
				.field("height", &self.height)
				.field("video-bit-rate", &self.video_bit_rate)
				.field("audio-bit-rate", &self.audio_bit_rate)
				.field("grey", &self.grey)
				.field("segments", &self.segments)
				.field("overlay", &self.overlay)
				.finish()
		}
	}
	/// A job whose input comes as it happens. It may take hours, by the operator's `live-time-s`, and takes one of
	/// the places for such jobs. Its outputs wait for no more input than they need; if the processor time is not enough,
	/// writing the input waits. No single pictures come out,
	/// `start-ms` is 0, and the source is not `any` or `mp4`, which are kept.
	#[repr(C)]
	#[derive(Clone, Copy)]
	pub struct Live {
		/// Its processor time, in thousandths of a processor: 10 up to what the operator gives; 0: that.
		pub cpu_permille: u32,
		/// Whether outputs have the time stamps of the input, as MPEG-TS has them, so that those of two jobs fit together.
		pub keep_times: bool,
	}
	impl ::core::fmt::Debug for Live {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			f.debug_struct("Live")
				.field("cpu-permille", &self.cpu_permille)
				.field("keep-times", &self.keep_times)
				.finish()
		}
	}
	/// What to make of the input.
	#[derive(Clone)]
	pub struct Order {
		pub source: Source,
		/// Milliseconds to leave out at the start. Inputs that are kept are sought in; others are decoded up to there.
		pub start_ms: u32,
		/// Milliseconds to take; 0: all.
		pub duration_ms: u32,
		pub live: Option<Live>,
		/// 1 to 4, all from one decoding. Each must be read: one that is not holds up the others. One for which the input has
		/// nothing fails them all. Sound of `any`, `mpegts` and `aac` is not copied into `fragmented-mp4`.
		pub outputs: _rt::Vec<Output>,
	}
	impl ::core::fmt::Debug for Order {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			f.debug_struct("Order")
				.field("source", &self.source)
				.field("start-ms", &self.start_ms)
				.field("duration-ms", &self.duration_ms)
				.field("live", &self.live)
				.field("outputs", &self.outputs)
				.finish()
		}
	}
	/// A running job. Dropping it ends it, unless an output was handed over (`netserv:http/hand-over`).
	#[derive(Debug)]
	#[repr(transparent)]
	pub struct Job {
		handle: _rt::Resource<Job>,
	}
	impl Job {
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
	unsafe impl _rt::WasmResource for Job {
		#[inline]
		unsafe fn drop(_handle: u32) {
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:media/jobs@1.1.0")]
			unsafe extern "C" {
				#[link_name = "[resource-drop]job"]
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
	impl Job {
		#[allow(unused_unsafe, clippy::all)]
		/// Returns the stream for the input, once. Dropping the stream ends the input.
		#[allow(async_fn_in_trait)]
		pub fn input(&self) -> Result<OutputStream, Error> {
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
				#[link(wasm_import_module = "netserv:media/jobs@1.1.0")]
				unsafe extern "C" {
					#[link_name = "[method]job.input"]
					fn wit_import1(_: i32, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: *mut u8) {
					unreachable!()
				}
				wit_import1((self).handle() as i32, ptr0);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				let result18 = match l2 {
					0 => {
						let e = {
							let l3 = *ptr0
								.add(::core::mem::size_of::<*const u8>())
								.cast::<i32>();
							super::super::super::wasi::io::streams::OutputStream::from_handle(
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
	impl Job {
		#[allow(unused_unsafe, clippy::all)]
		/// Returns the stream of an output by its place in the order, once. It ends with the output, also if that ends early:
		/// `finish` tells. Dropping it before ends all outputs.
		#[allow(async_fn_in_trait)]
		pub fn output(&self, place: u32) -> Result<InputStream, Error> {
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
				#[link(wasm_import_module = "netserv:media/jobs@1.1.0")]
				unsafe extern "C" {
					#[link_name = "[method]job.output"]
					fn wit_import1(_: i32, _: i32, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: i32, _: *mut u8) {
					unreachable!()
				}
				wit_import1((self).handle() as i32, _rt::as_i32(&place), ptr0);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				let result18 = match l2 {
					0 => {
						let e = {
							let l3 = *ptr0
								.add(::core::mem::size_of::<*const u8>())
								.cast::<i32>();
							super::super::super::wasi::io::streams::InputStream::from_handle(
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
	impl Job {
		#[allow(unused_unsafe, clippy::all)]
		/// Returns how the job ended; waits for it. Outputs must have been read to their ends.
		#[allow(async_fn_in_trait)]
		pub fn finish(this: Job) -> Result<(), Error> {
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
				#[link(wasm_import_module = "netserv:media/jobs@1.1.0")]
				unsafe extern "C" {
					#[link_name = "[static]job.finish"]
					fn wit_import1(_: i32, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: *mut u8) {
					unreachable!()
				}
				wit_import1((&this).take_handle() as i32, ptr0);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				let result17 = match l2 {
					0 => {
						let e = ();
						Ok(e)
					}
					1 => {
						let e = {
							let l3 = i32::from(
								*ptr0.add(::core::mem::size_of::<*const u8>()).cast::<u8>(),
							);
							use super::super::super::netserv::media1_0_0::media::Error as V16;
							let v16 = match l3 {
								0 => {
									let e16 = {
										let l4 = *ptr0
											.add(2 * ::core::mem::size_of::<*const u8>())
											.cast::<*mut u8>();
										let l5 = *ptr0
											.add(3 * ::core::mem::size_of::<*const u8>())
											.cast::<usize>();
										let len6 = l5;
										let bytes6 = _rt::Vec::from_raw_parts(
											l4.cast(),
											len6,
											len6,
										);
										_rt::string_lift(bytes6)
									};
									V16::Invalid(e16)
								}
								1 => V16::Busy,
								2 => {
									let e16 = {
										let l7 = *ptr0
											.add(2 * ::core::mem::size_of::<*const u8>())
											.cast::<*mut u8>();
										let l8 = *ptr0
											.add(3 * ::core::mem::size_of::<*const u8>())
											.cast::<usize>();
										let len9 = l8;
										let bytes9 = _rt::Vec::from_raw_parts(
											l7.cast(),
											len9,
											len9,
										);
										_rt::string_lift(bytes9)
									};
									V16::Failed(e16)
								}
								3 => {
									let e16 = {
										let l10 = *ptr0
											.add(2 * ::core::mem::size_of::<*const u8>())
											.cast::<*mut u8>();
										let l11 = *ptr0
											.add(3 * ::core::mem::size_of::<*const u8>())
											.cast::<usize>();
										let len12 = l11;
										let bytes12 = _rt::Vec::from_raw_parts(
											l10.cast(),
											len12,
											len12,
										);
										_rt::string_lift(bytes12)
									};
									V16::Limit(e16)
								}
								n => {
									debug_assert_eq!(n, 4, "invalid enum discriminant");
									let e16 = {
										let l13 = *ptr0
											.add(2 * ::core::mem::size_of::<*const u8>())
											.cast::<*mut u8>();
										let l14 = *ptr0
											.add(3 * ::core::mem::size_of::<*const u8>())
											.cast::<usize>();
										let len15 = l14;
										let bytes15 = _rt::Vec::from_raw_parts(
											l13.cast(),
											len15,
											len15,
										);
										_rt::string_lift(bytes15)
									};
									V16::Unavailable(e16)
								}
							};
							v16
						};
						Err(e)
					}
					_ => _rt::invalid_enum_discriminant(),
				};
				result17
			}
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Begins a job; waits for its turn.
	#[allow(async_fn_in_trait)]
	pub fn begin(order: &Order) -> Result<Job, Error> {
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
			let Order {
				source: source0,
				start_ms: start_ms0,
				duration_ms: duration_ms0,
				live: live0,
				outputs: outputs0,
			} = order;
			let (result2_0, result2_1, result2_2) = match live0 {
				Some(e) => {
					let Live { cpu_permille: cpu_permille1, keep_times: keep_times1 } = e;
					(
						1i32,
						_rt::as_i32(cpu_permille1),
						match keep_times1 {
							true => 1,
							false => 0,
						},
					)
				}
				None => (0i32, 0i32, 0i32),
			};
			let vec8 = outputs0;
			let len8 = vec8.len();
			let layout8 = _rt::alloc::Layout::from_size_align(
					vec8.len() * (32 + 5 * ::core::mem::size_of::<*const u8>()),
					::core::mem::size_of::<*const u8>(),
				)
				.unwrap();
			let (result8, _cleanup8) = wit_bindgen::rt::Cleanup::new(layout8);
			for (i, e) in vec8.into_iter().enumerate() {
				let base = result8
					.add(i * (32 + 5 * ::core::mem::size_of::<*const u8>()));
				{
					let Output {
						format: format3,
						video: video3,
						audio: audio3,
						width: width3,
						height: height3,
						video_bit_rate: video_bit_rate3,
						audio_bit_rate: audio_bit_rate3,
						grey: grey3,
						segments: segments3,
						overlay: overlay3,
					} = e;
					*base.add(0).cast::<u8>() = (format3.clone() as i32) as u8;
					*base.add(1).cast::<u8>() = (video3.clone() as i32) as u8;
					*base.add(2).cast::<u8>() = (audio3.clone() as i32) as u8;
					*base.add(4).cast::<i32>() = _rt::as_i32(width3);
					*base.add(8).cast::<i32>() = _rt::as_i32(height3);
					*base.add(12).cast::<i32>() = _rt::as_i32(video_bit_rate3);
					*base.add(16).cast::<i32>() = _rt::as_i32(audio_bit_rate3);
					*base.add(20).cast::<u8>() = (match grey3 {
						true => 1,
						false => 0,
					}) as u8;
					match segments3 {
						Segments::Free => {
							*base.add(24).cast::<u8>() = (0i32) as u8;
						}
						Segments::Every(e) => {
							*base.add(24).cast::<u8>() = (1i32) as u8;
							*base.add(28).cast::<i32>() = _rt::as_i32(e);
						}
						Segments::Source => {
							*base.add(24).cast::<u8>() = (2i32) as u8;
						}
					}
					match overlay3 {
						Some(e) => {
							*base.add(32).cast::<u8>() = (1i32) as u8;
							let (t4_0, t4_1) = e;
							use super::super::super::netserv::media1_0_0::media::Overlay as V7;
							match t4_0 {
								V7::Text(e) => {
									*base
										.add(32 + 1 * ::core::mem::size_of::<*const u8>())
										.cast::<u8>() = (0i32) as u8;
									let vec5 = e;
									let ptr5 = vec5.as_ptr().cast::<u8>();
									let len5 = vec5.len();
									*base
										.add(32 + 3 * ::core::mem::size_of::<*const u8>())
										.cast::<usize>() = len5;
									*base
										.add(32 + 2 * ::core::mem::size_of::<*const u8>())
										.cast::<*mut u8>() = ptr5.cast_mut();
								}
								V7::Picture(e) => {
									*base
										.add(32 + 1 * ::core::mem::size_of::<*const u8>())
										.cast::<u8>() = (1i32) as u8;
									let vec6 = e;
									let ptr6 = vec6.as_ptr().cast::<u8>();
									let len6 = vec6.len();
									*base
										.add(32 + 3 * ::core::mem::size_of::<*const u8>())
										.cast::<usize>() = len6;
									*base
										.add(32 + 2 * ::core::mem::size_of::<*const u8>())
										.cast::<*mut u8>() = ptr6.cast_mut();
								}
							}
							*base
								.add(32 + 4 * ::core::mem::size_of::<*const u8>())
								.cast::<u8>() = (t4_1.clone() as i32) as u8;
						}
						None => {
							*base.add(32).cast::<u8>() = (0i32) as u8;
						}
					};
				}
			}
			let ptr9 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:media/jobs@1.1.0")]
			unsafe extern "C" {
				#[link_name = "begin"]
				fn wit_import10(
					_: i32,
					_: i32,
					_: i32,
					_: i32,
					_: i32,
					_: i32,
					_: *mut u8,
					_: usize,
					_: *mut u8,
				);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import10(
				_: i32,
				_: i32,
				_: i32,
				_: i32,
				_: i32,
				_: i32,
				_: *mut u8,
				_: usize,
				_: *mut u8,
			) {
				unreachable!()
			}
			wit_import10(
				source0.clone() as i32,
				_rt::as_i32(start_ms0),
				_rt::as_i32(duration_ms0),
				result2_0,
				result2_1,
				result2_2,
				result8,
				len8,
				ptr9,
			);
			let l11 = i32::from(*ptr9.add(0).cast::<u8>());
			let result27 = match l11 {
				0 => {
					let e = {
						let l12 = *ptr9
							.add(::core::mem::size_of::<*const u8>())
							.cast::<i32>();
						Job::from_handle(l12 as u32)
					};
					Ok(e)
				}
				1 => {
					let e = {
						let l13 = i32::from(
							*ptr9.add(::core::mem::size_of::<*const u8>()).cast::<u8>(),
						);
						use super::super::super::netserv::media1_0_0::media::Error as V26;
						let v26 = match l13 {
							0 => {
								let e26 = {
									let l14 = *ptr9
										.add(2 * ::core::mem::size_of::<*const u8>())
										.cast::<*mut u8>();
									let l15 = *ptr9
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
								V26::Invalid(e26)
							}
							1 => V26::Busy,
							2 => {
								let e26 = {
									let l17 = *ptr9
										.add(2 * ::core::mem::size_of::<*const u8>())
										.cast::<*mut u8>();
									let l18 = *ptr9
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
								V26::Failed(e26)
							}
							3 => {
								let e26 = {
									let l20 = *ptr9
										.add(2 * ::core::mem::size_of::<*const u8>())
										.cast::<*mut u8>();
									let l21 = *ptr9
										.add(3 * ::core::mem::size_of::<*const u8>())
										.cast::<usize>();
									let len22 = l21;
									let bytes22 = _rt::Vec::from_raw_parts(
										l20.cast(),
										len22,
										len22,
									);
									_rt::string_lift(bytes22)
								};
								V26::Limit(e26)
							}
							n => {
								debug_assert_eq!(n, 4, "invalid enum discriminant");
								let e26 = {
									let l23 = *ptr9
										.add(2 * ::core::mem::size_of::<*const u8>())
										.cast::<*mut u8>();
									let l24 = *ptr9
										.add(3 * ::core::mem::size_of::<*const u8>())
										.cast::<usize>();
									let len25 = l24;
									let bytes25 = _rt::Vec::from_raw_parts(
										l23.cast(),
										len25,
										len25,
									);
									_rt::string_lift(bytes25)
								};
								V26::Unavailable(e26)
							}
						};
						v26
					};
					Err(e)
				}
				_ => _rt::invalid_enum_discriminant(),
			};
			result27
		}
	}
}
