// SPDX-License-Identifier: Apache-2.0
// Made from wit/ by `./dev bindings`.

/// Sound and pictures, by ffmpeg in a process and sandbox of its own.
#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
pub mod media {
	#[used]
	#[doc(hidden)]
	static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
	use super::super::super::_rt;
	pub type InputStream = super::super::super::wasi::io::streams::InputStream;
	pub type OutputStream = super::super::super::wasi::io::streams::OutputStream;
	/// Why there is no result.
	#[derive(Clone)]
	pub enum Error {
		/// An argument is out of its bounds; which one.
		Invalid(_rt::String),
		/// Too many jobs at a time.
		Busy,
		/// The input was not understood; ffmpeg's last line.
		Failed(_rt::String),
		/// Time, memory, input or output ran out; which one.
		Limit(_rt::String),
		/// The operator does not offer it, or it could not be started.
		Unavailable(_rt::String),
	}
	impl ::core::fmt::Debug for Error {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			match self {
				Error::Invalid(e) => f.debug_tuple("Error::Invalid").field(e).finish(),
				Error::Busy => f.debug_tuple("Error::Busy").finish(),
				Error::Failed(e) => f.debug_tuple("Error::Failed").field(e).finish(),
				Error::Limit(e) => f.debug_tuple("Error::Limit").field(e).finish(),
				Error::Unavailable(e) => {
					f.debug_tuple("Error::Unavailable").field(e).finish()
				}
			}
		}
	}
	impl ::core::fmt::Display for Error {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			write!(f, "{:?}", self)
		}
	}
	impl ::core::error::Error for Error {}
	/// What an input is.
	#[repr(u8)]
	#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
	pub enum Source {
		/// One of the others. It is kept until the job ends, at most as many bytes as the operator allows, so that it can
		/// be read twice.
		Any,
		/// MP4 and QuickTime. Kept likewise.
		Mp4,
		/// Matroska and WebM.
		Matroska,
		Mpegts,
		Ogg,
		Flv,
		Avi,
		Mp3,
		/// AAC with ADTS headers.
		Aac,
		Wav,
		Flac,
		/// One picture.
		Jpeg,
		/// One picture.
		Png,
	}
	impl ::core::fmt::Debug for Source {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			match self {
				Source::Any => f.debug_tuple("Source::Any").finish(),
				Source::Mp4 => f.debug_tuple("Source::Mp4").finish(),
				Source::Matroska => f.debug_tuple("Source::Matroska").finish(),
				Source::Mpegts => f.debug_tuple("Source::Mpegts").finish(),
				Source::Ogg => f.debug_tuple("Source::Ogg").finish(),
				Source::Flv => f.debug_tuple("Source::Flv").finish(),
				Source::Avi => f.debug_tuple("Source::Avi").finish(),
				Source::Mp3 => f.debug_tuple("Source::Mp3").finish(),
				Source::Aac => f.debug_tuple("Source::Aac").finish(),
				Source::Wav => f.debug_tuple("Source::Wav").finish(),
				Source::Flac => f.debug_tuple("Source::Flac").finish(),
				Source::Jpeg => f.debug_tuple("Source::Jpeg").finish(),
				Source::Png => f.debug_tuple("Source::Png").finish(),
			}
		}
	}
	impl Source {
		#[doc(hidden)]
		pub unsafe fn _lift(val: u8) -> Source {
			if !cfg!(debug_assertions) {
				return unsafe { ::core::mem::transmute(val) };
			}
			match val {
				0 => Source::Any,
				1 => Source::Mp4,
				2 => Source::Matroska,
				3 => Source::Mpegts,
				4 => Source::Ogg,
				5 => Source::Flv,
				6 => Source::Avi,
				7 => Source::Mp3,
				8 => Source::Aac,
				9 => Source::Wav,
				10 => Source::Flac,
				11 => Source::Jpeg,
				12 => Source::Png,
				_ => panic!("invalid enum discriminant"),
			}
		}
	}
	/// What comes out.
	#[repr(u8)]
	#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
	pub enum Format {
		/// VP8 or VP9 with Opus or Vorbis.
		Webm,
		/// MP4 that needs no seeking: H.264 with AAC or MP3.
		FragmentedMp4,
		/// H.264 with AAC or MP3.
		Mpegts,
		/// Every codec.
		Matroska,
		/// Sound only: Vorbis or Opus.
		Ogg,
		Mp3,
		Wav,
		Flac,
		/// The first picture.
		Jpeg,
		/// The first picture.
		Png,
	}
	impl ::core::fmt::Debug for Format {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			match self {
				Format::Webm => f.debug_tuple("Format::Webm").finish(),
				Format::FragmentedMp4 => f.debug_tuple("Format::FragmentedMp4").finish(),
				Format::Mpegts => f.debug_tuple("Format::Mpegts").finish(),
				Format::Matroska => f.debug_tuple("Format::Matroska").finish(),
				Format::Ogg => f.debug_tuple("Format::Ogg").finish(),
				Format::Mp3 => f.debug_tuple("Format::Mp3").finish(),
				Format::Wav => f.debug_tuple("Format::Wav").finish(),
				Format::Flac => f.debug_tuple("Format::Flac").finish(),
				Format::Jpeg => f.debug_tuple("Format::Jpeg").finish(),
				Format::Png => f.debug_tuple("Format::Png").finish(),
			}
		}
	}
	impl Format {
		#[doc(hidden)]
		pub unsafe fn _lift(val: u8) -> Format {
			if !cfg!(debug_assertions) {
				return unsafe { ::core::mem::transmute(val) };
			}
			match val {
				0 => Format::Webm,
				1 => Format::FragmentedMp4,
				2 => Format::Mpegts,
				3 => Format::Matroska,
				4 => Format::Ogg,
				5 => Format::Mp3,
				6 => Format::Wav,
				7 => Format::Flac,
				8 => Format::Jpeg,
				9 => Format::Png,
				_ => panic!("invalid enum discriminant"),
			}
		}
	}
	/// How moving pictures are coded.
	#[repr(u8)]
	#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
	pub enum VideoCodec {
		/// As the format usually has them.
		Standard,
		/// As they are.
		Copy,
		H264,
		Vp8,
		Vp9,
		/// They are left out.
		None,
	}
	impl ::core::fmt::Debug for VideoCodec {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			match self {
				VideoCodec::Standard => f.debug_tuple("VideoCodec::Standard").finish(),
				VideoCodec::Copy => f.debug_tuple("VideoCodec::Copy").finish(),
				VideoCodec::H264 => f.debug_tuple("VideoCodec::H264").finish(),
				VideoCodec::Vp8 => f.debug_tuple("VideoCodec::Vp8").finish(),
				VideoCodec::Vp9 => f.debug_tuple("VideoCodec::Vp9").finish(),
				VideoCodec::None => f.debug_tuple("VideoCodec::None").finish(),
			}
		}
	}
	impl VideoCodec {
		#[doc(hidden)]
		pub unsafe fn _lift(val: u8) -> VideoCodec {
			if !cfg!(debug_assertions) {
				return unsafe { ::core::mem::transmute(val) };
			}
			match val {
				0 => VideoCodec::Standard,
				1 => VideoCodec::Copy,
				2 => VideoCodec::H264,
				3 => VideoCodec::Vp8,
				4 => VideoCodec::Vp9,
				5 => VideoCodec::None,
				_ => panic!("invalid enum discriminant"),
			}
		}
	}
	/// How sound is coded.
	#[repr(u8)]
	#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
	pub enum AudioCodec {
		/// As the format usually has it.
		Standard,
		/// As it is.
		Copy,
		Aac,
		Opus,
		Vorbis,
		Mp3,
		/// It is left out.
		None,
	}
	impl ::core::fmt::Debug for AudioCodec {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			match self {
				AudioCodec::Standard => f.debug_tuple("AudioCodec::Standard").finish(),
				AudioCodec::Copy => f.debug_tuple("AudioCodec::Copy").finish(),
				AudioCodec::Aac => f.debug_tuple("AudioCodec::Aac").finish(),
				AudioCodec::Opus => f.debug_tuple("AudioCodec::Opus").finish(),
				AudioCodec::Vorbis => f.debug_tuple("AudioCodec::Vorbis").finish(),
				AudioCodec::Mp3 => f.debug_tuple("AudioCodec::Mp3").finish(),
				AudioCodec::None => f.debug_tuple("AudioCodec::None").finish(),
			}
		}
	}
	impl AudioCodec {
		#[doc(hidden)]
		pub unsafe fn _lift(val: u8) -> AudioCodec {
			if !cfg!(debug_assertions) {
				return unsafe { ::core::mem::transmute(val) };
			}
			match val {
				0 => AudioCodec::Standard,
				1 => AudioCodec::Copy,
				2 => AudioCodec::Aac,
				3 => AudioCodec::Opus,
				4 => AudioCodec::Vorbis,
				5 => AudioCodec::Mp3,
				6 => AudioCodec::None,
				_ => panic!("invalid enum discriminant"),
			}
		}
	}
	/// Where an overlay goes.
	#[repr(u8)]
	#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
	pub enum Corner {
		TopLeft,
		TopRight,
		BottomLeft,
		BottomRight,
		Center,
	}
	impl ::core::fmt::Debug for Corner {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			match self {
				Corner::TopLeft => f.debug_tuple("Corner::TopLeft").finish(),
				Corner::TopRight => f.debug_tuple("Corner::TopRight").finish(),
				Corner::BottomLeft => f.debug_tuple("Corner::BottomLeft").finish(),
				Corner::BottomRight => f.debug_tuple("Corner::BottomRight").finish(),
				Corner::Center => f.debug_tuple("Corner::Center").finish(),
			}
		}
	}
	impl Corner {
		#[doc(hidden)]
		pub unsafe fn _lift(val: u8) -> Corner {
			if !cfg!(debug_assertions) {
				return unsafe { ::core::mem::transmute(val) };
			}
			match val {
				0 => Corner::TopLeft,
				1 => Corner::TopRight,
				2 => Corner::BottomLeft,
				3 => Corner::BottomRight,
				4 => Corner::Center,
				_ => panic!("invalid enum discriminant"),
			}
		}
	}
	/// What is laid over the picture.
	#[derive(Clone)]
	pub enum Overlay {
		/// A line of text, at most 256 bytes.
		Text(_rt::String),
		/// A PNG or JPEG picture, at most 1 MiB.
		Picture(_rt::Vec<u8>),
	}
	impl ::core::fmt::Debug for Overlay {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			match self {
				Overlay::Text(e) => f.debug_tuple("Overlay::Text").field(e).finish(),
				Overlay::Picture(e) => {
					f.debug_tuple("Overlay::Picture").field(e).finish()
				}
			}
		}
	}
	/// What to make of the input.
	#[derive(Clone)]
	pub struct Settings {
		pub source: Source,
		pub format: Format,
		pub video: VideoCodec,
		pub audio: AudioCodec,
		/// Pixels, made even for moving pictures; the other side follows if one is 0; both 0: as the input. At most
		/// 3840 × 2160.
		pub width: u32,
		pub height: u32,
		/// Bits per second of moving pictures; 0: by quality. At most 50,000,000.
		pub video_bit_rate: u32,
		/// Bits per second of the sound; 0: as usual. At most 512,000.
		pub audio_bit_rate: u32,
		/// Milliseconds of the input to take; 0: all.
		pub duration_ms: u32,
		pub overlay: Option<(Overlay, Corner)>,
	}
	impl ::core::fmt::Debug for Settings {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			f.debug_struct("Settings")
				.field("source", &self.source)
				.field("format", &self.format)
				.field("video", &self.video)
				.field("audio", &self.audio)
				.field("width", &self.width)
				.field("height", &self.height)
				.field("video-bit-rate", &self.video_bit_rate)
				.field("audio-bit-rate", &self.audio_bit_rate)
				.field("duration-ms", &self.duration_ms)
				.field("overlay", &self.overlay)
				.finish()
		}
	}
	/// Moving pictures, or a single one.
	#[derive(Clone)]
	pub struct VideoStream {
		pub codec: _rt::String,
		pub width: u32,
		pub height: u32,
	}
	impl ::core::fmt::Debug for VideoStream {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			f.debug_struct("VideoStream")
				.field("codec", &self.codec)
				.field("width", &self.width)
				.field("height", &self.height)
				.finish()
		}
	}
	/// Sound.
	#[derive(Clone)]
	pub struct AudioStream {
		pub codec: _rt::String,
		/// Samples a second.
		pub sample_rate: u32,
		pub channels: u32,
	}
	impl ::core::fmt::Debug for AudioStream {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			f.debug_struct("AudioStream")
				.field("codec", &self.codec)
				.field("sample-rate", &self.sample_rate)
				.field("channels", &self.channels)
				.finish()
		}
	}
	/// What an input holds.
	#[derive(Clone)]
	pub struct Description {
		/// ffmpeg's name of the format; several of one kind with commas between them.
		pub format: _rt::String,
		/// Milliseconds; 0 if not known.
		pub duration_ms: u64,
		pub video: _rt::Vec<VideoStream>,
		pub audio: _rt::Vec<AudioStream>,
	}
	impl ::core::fmt::Debug for Description {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			f.debug_struct("Description")
				.field("format", &self.format)
				.field("duration-ms", &self.duration_ms)
				.field("video", &self.video)
				.field("audio", &self.audio)
				.finish()
		}
	}
	/// A running job. Dropping it ends it.
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
			#[link(wasm_import_module = "netserv:media/media@1.0.0")]
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
				#[link(wasm_import_module = "netserv:media/media@1.0.0")]
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
									Error::Invalid(e17)
								}
								1 => Error::Busy,
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
									Error::Failed(e17)
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
									Error::Limit(e17)
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
									Error::Unavailable(e17)
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
		/// Returns the stream of the output, once. It ends with the output, also if that ends early: `finish` tells.
		#[allow(async_fn_in_trait)]
		pub fn output(&self) -> Result<InputStream, Error> {
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
				#[link(wasm_import_module = "netserv:media/media@1.0.0")]
				unsafe extern "C" {
					#[link_name = "[method]job.output"]
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
									Error::Invalid(e17)
								}
								1 => Error::Busy,
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
									Error::Failed(e17)
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
									Error::Limit(e17)
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
									Error::Unavailable(e17)
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
		/// Returns how the job ended; waits for it. The output must have been read to its end, or its stream dropped.
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
				#[link(wasm_import_module = "netserv:media/media@1.0.0")]
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
									Error::Invalid(e16)
								}
								1 => Error::Busy,
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
									Error::Failed(e16)
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
									Error::Limit(e16)
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
									Error::Unavailable(e16)
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
	pub fn transcode(settings: &Settings) -> Result<Job, Error> {
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
			let Settings {
				source: source0,
				format: format0,
				video: video0,
				audio: audio0,
				width: width0,
				height: height0,
				video_bit_rate: video_bit_rate0,
				audio_bit_rate: audio_bit_rate0,
				duration_ms: duration_ms0,
				overlay: overlay0,
			} = settings;
			let (result5_0, result5_1, result5_2, result5_3, result5_4) = match overlay0 {
				Some(e) => {
					let (t1_0, t1_1) = e;
					let (result4_0, result4_1, result4_2) = match t1_0 {
						Overlay::Text(e) => {
							let vec2 = e;
							let ptr2 = vec2.as_ptr().cast::<u8>();
							let len2 = vec2.len();
							(0i32, ptr2.cast_mut(), len2)
						}
						Overlay::Picture(e) => {
							let vec3 = e;
							let ptr3 = vec3.as_ptr().cast::<u8>();
							let len3 = vec3.len();
							(1i32, ptr3.cast_mut(), len3)
						}
					};
					(1i32, result4_0, result4_1, result4_2, t1_1.clone() as i32)
				}
				None => (0i32, 0i32, ::core::ptr::null_mut(), 0usize, 0i32),
			};
			let ptr6 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:media/media@1.0.0")]
			unsafe extern "C" {
				#[link_name = "transcode"]
				fn wit_import7(
					_: i32,
					_: i32,
					_: i32,
					_: i32,
					_: i32,
					_: i32,
					_: i32,
					_: i32,
					_: i32,
					_: i32,
					_: i32,
					_: *mut u8,
					_: usize,
					_: i32,
					_: *mut u8,
				);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import7(
				_: i32,
				_: i32,
				_: i32,
				_: i32,
				_: i32,
				_: i32,
				_: i32,
				_: i32,
				_: i32,
				_: i32,
				_: i32,
				_: *mut u8,
				_: usize,
				_: i32,
				_: *mut u8,
			) {
				unreachable!()
			}
			wit_import7(
				source0.clone() as i32,
				format0.clone() as i32,
				video0.clone() as i32,
				audio0.clone() as i32,
				_rt::as_i32(width0),
				_rt::as_i32(height0),
				_rt::as_i32(video_bit_rate0),
				_rt::as_i32(audio_bit_rate0),
				_rt::as_i32(duration_ms0),
				result5_0,
				result5_1,
				result5_2,
				result5_3,
				result5_4,
				ptr6,
			);
			let l8 = i32::from(*ptr6.add(0).cast::<u8>());
			let result24 = match l8 {
				0 => {
					let e = {
						let l9 = *ptr6
							.add(::core::mem::size_of::<*const u8>())
							.cast::<i32>();
						Job::from_handle(l9 as u32)
					};
					Ok(e)
				}
				1 => {
					let e = {
						let l10 = i32::from(
							*ptr6.add(::core::mem::size_of::<*const u8>()).cast::<u8>(),
						);
						let v23 = match l10 {
							0 => {
								let e23 = {
									let l11 = *ptr6
										.add(2 * ::core::mem::size_of::<*const u8>())
										.cast::<*mut u8>();
									let l12 = *ptr6
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
								Error::Invalid(e23)
							}
							1 => Error::Busy,
							2 => {
								let e23 = {
									let l14 = *ptr6
										.add(2 * ::core::mem::size_of::<*const u8>())
										.cast::<*mut u8>();
									let l15 = *ptr6
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
								Error::Failed(e23)
							}
							3 => {
								let e23 = {
									let l17 = *ptr6
										.add(2 * ::core::mem::size_of::<*const u8>())
										.cast::<*mut u8>();
									let l18 = *ptr6
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
								Error::Limit(e23)
							}
							n => {
								debug_assert_eq!(n, 4, "invalid enum discriminant");
								let e23 = {
									let l20 = *ptr6
										.add(2 * ::core::mem::size_of::<*const u8>())
										.cast::<*mut u8>();
									let l21 = *ptr6
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
								Error::Unavailable(e23)
							}
						};
						v23
					};
					Err(e)
				}
				_ => _rt::invalid_enum_discriminant(),
			};
			result24
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Tells what an input of at most 16 MiB holds.
	#[allow(async_fn_in_trait)]
	pub fn probe(source: Source, input: &[u8]) -> Result<Description, Error> {
		unsafe {
			#[repr(align(8))]
			struct RetArea(
				[::core::mem::MaybeUninit<
					u8,
				>; 16 + 6 * ::core::mem::size_of::<*const u8>()],
			);
			let mut ret_area = RetArea(
				[::core::mem::MaybeUninit::uninit(); 16
					+ 6 * ::core::mem::size_of::<*const u8>()],
			);
			let vec0 = input;
			let ptr0 = vec0.as_ptr().cast::<u8>();
			let len0 = vec0.len();
			let ptr1 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:media/media@1.0.0")]
			unsafe extern "C" {
				#[link_name = "probe"]
				fn wit_import2(_: i32, _: *mut u8, _: usize, _: *mut u8);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import2(_: i32, _: *mut u8, _: usize, _: *mut u8) {
				unreachable!()
			}
			wit_import2(source.clone() as i32, ptr0.cast_mut(), len0, ptr1);
			let l3 = i32::from(*ptr1.add(0).cast::<u8>());
			let result38 = match l3 {
				0 => {
					let e = {
						let l4 = *ptr1.add(8).cast::<*mut u8>();
						let l5 = *ptr1
							.add(8 + 1 * ::core::mem::size_of::<*const u8>())
							.cast::<usize>();
						let len6 = l5;
						let bytes6 = _rt::Vec::from_raw_parts(l4.cast(), len6, len6);
						let l7 = *ptr1
							.add(8 + 2 * ::core::mem::size_of::<*const u8>())
							.cast::<i64>();
						let l8 = *ptr1
							.add(16 + 2 * ::core::mem::size_of::<*const u8>())
							.cast::<*mut u8>();
						let l9 = *ptr1
							.add(16 + 3 * ::core::mem::size_of::<*const u8>())
							.cast::<usize>();
						let base15 = l8;
						let len15 = l9;
						let mut result15 = _rt::Vec::with_capacity(len15);
						for i in 0..len15 {
							let base = base15
								.add(i * (8 + 2 * ::core::mem::size_of::<*const u8>()));
							let e15 = {
								let l10 = *base.add(0).cast::<*mut u8>();
								let l11 = *base
									.add(::core::mem::size_of::<*const u8>())
									.cast::<usize>();
								let len12 = l11;
								let bytes12 = _rt::Vec::from_raw_parts(
									l10.cast(),
									len12,
									len12,
								);
								let l13 = *base
									.add(2 * ::core::mem::size_of::<*const u8>())
									.cast::<i32>();
								let l14 = *base
									.add(4 + 2 * ::core::mem::size_of::<*const u8>())
									.cast::<i32>();
								VideoStream {
									codec: _rt::string_lift(bytes12),
									width: l13 as u32,
									height: l14 as u32,
								}
							};
							result15.push(e15);
						}
						_rt::cabi_dealloc(
							base15,
							len15 * (8 + 2 * ::core::mem::size_of::<*const u8>()),
							::core::mem::size_of::<*const u8>(),
						);
						let l16 = *ptr1
							.add(16 + 4 * ::core::mem::size_of::<*const u8>())
							.cast::<*mut u8>();
						let l17 = *ptr1
							.add(16 + 5 * ::core::mem::size_of::<*const u8>())
							.cast::<usize>();
						let base23 = l16;
						let len23 = l17;
						let mut result23 = _rt::Vec::with_capacity(len23);
						for i in 0..len23 {
							let base = base23
								.add(i * (8 + 2 * ::core::mem::size_of::<*const u8>()));
							let e23 = {
								let l18 = *base.add(0).cast::<*mut u8>();
								let l19 = *base
									.add(::core::mem::size_of::<*const u8>())
									.cast::<usize>();
								let len20 = l19;
								let bytes20 = _rt::Vec::from_raw_parts(
									l18.cast(),
									len20,
									len20,
								);
								let l21 = *base
									.add(2 * ::core::mem::size_of::<*const u8>())
									.cast::<i32>();
								let l22 = *base
									.add(4 + 2 * ::core::mem::size_of::<*const u8>())
									.cast::<i32>();
								AudioStream {
									codec: _rt::string_lift(bytes20),
									sample_rate: l21 as u32,
									channels: l22 as u32,
								}
							};
							result23.push(e23);
						}
						_rt::cabi_dealloc(
							base23,
							len23 * (8 + 2 * ::core::mem::size_of::<*const u8>()),
							::core::mem::size_of::<*const u8>(),
						);
						Description {
							format: _rt::string_lift(bytes6),
							duration_ms: l7 as u64,
							video: result15,
							audio: result23,
						}
					};
					Ok(e)
				}
				1 => {
					let e = {
						let l24 = i32::from(*ptr1.add(8).cast::<u8>());
						let v37 = match l24 {
							0 => {
								let e37 = {
									let l25 = *ptr1
										.add(8 + 1 * ::core::mem::size_of::<*const u8>())
										.cast::<*mut u8>();
									let l26 = *ptr1
										.add(8 + 2 * ::core::mem::size_of::<*const u8>())
										.cast::<usize>();
									let len27 = l26;
									let bytes27 = _rt::Vec::from_raw_parts(
										l25.cast(),
										len27,
										len27,
									);
									_rt::string_lift(bytes27)
								};
								Error::Invalid(e37)
							}
							1 => Error::Busy,
							2 => {
								let e37 = {
									let l28 = *ptr1
										.add(8 + 1 * ::core::mem::size_of::<*const u8>())
										.cast::<*mut u8>();
									let l29 = *ptr1
										.add(8 + 2 * ::core::mem::size_of::<*const u8>())
										.cast::<usize>();
									let len30 = l29;
									let bytes30 = _rt::Vec::from_raw_parts(
										l28.cast(),
										len30,
										len30,
									);
									_rt::string_lift(bytes30)
								};
								Error::Failed(e37)
							}
							3 => {
								let e37 = {
									let l31 = *ptr1
										.add(8 + 1 * ::core::mem::size_of::<*const u8>())
										.cast::<*mut u8>();
									let l32 = *ptr1
										.add(8 + 2 * ::core::mem::size_of::<*const u8>())
										.cast::<usize>();
									let len33 = l32;
									let bytes33 = _rt::Vec::from_raw_parts(
										l31.cast(),
										len33,
										len33,
									);
									_rt::string_lift(bytes33)
								};
								Error::Limit(e37)
							}
							n => {
								debug_assert_eq!(n, 4, "invalid enum discriminant");
								let e37 = {
									let l34 = *ptr1
										.add(8 + 1 * ::core::mem::size_of::<*const u8>())
										.cast::<*mut u8>();
									let l35 = *ptr1
										.add(8 + 2 * ::core::mem::size_of::<*const u8>())
										.cast::<usize>();
									let len36 = l35;
									let bytes36 = _rt::Vec::from_raw_parts(
										l34.cast(),
										len36,
										len36,
									);
									_rt::string_lift(bytes36)
								};
								Error::Unavailable(e37)
							}
						};
						v37
					};
					Err(e)
				}
				_ => _rt::invalid_enum_discriminant(),
			};
			result38
		}
	}
}
