// SPDX-License-Identifier: Apache-2.0
// Made from wit/ by `./dev bindings`.

/// WASI Monotonic Clock is a clock API intended to let users measure elapsed
/// time.
///
/// It is intended to be portable at least between Unix-family platforms and
/// Windows.
///
/// A monotonic clock is a clock which has an unspecified initial value, and
/// successive reads of the clock will produce non-decreasing values.
#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
pub mod monotonic_clock {
	#[used]
	#[doc(hidden)]
	static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
	use super::super::super::_rt;
	pub type Pollable = super::super::super::wasi::io::poll::Pollable;
	/// An instant in time, in nanoseconds. An instant is relative to an
	/// unspecified initial value, and can only be compared to instances from
	/// the same monotonic-clock.
	pub type Instant = u64;
	/// A duration of time, in nanoseconds.
	pub type Duration = u64;
	#[allow(unused_unsafe, clippy::all)]
	/// Read the current value of the clock.
	///
	/// The clock is monotonic, therefore calling this function repeatedly will
	/// produce a sequence of non-decreasing values.
	///
	/// For completeness, this function traps if it's not possible to represent
	/// the value of the clock in an `instant`. Consequently, implementations
	/// should ensure that the starting time is low enough to avoid the
	/// possibility of overflow in practice.
	#[allow(async_fn_in_trait)]
	pub fn now() -> Instant {
		unsafe {
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "wasi:clocks/monotonic-clock@0.2.12")]
			unsafe extern "C" {
				#[link_name = "now"]
				fn wit_import0() -> i64;
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import0() -> i64 {
				unreachable!()
			}
			let ret = wit_import0();
			ret as u64
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Query the resolution of the clock. Returns the duration of time
	/// corresponding to a clock tick.
	#[allow(async_fn_in_trait)]
	pub fn resolution() -> Duration {
		unsafe {
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "wasi:clocks/monotonic-clock@0.2.12")]
			unsafe extern "C" {
				#[link_name = "resolution"]
				fn wit_import0() -> i64;
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import0() -> i64 {
				unreachable!()
			}
			let ret = wit_import0();
			ret as u64
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Create a `pollable` which will resolve once the specified instant
	/// has occurred.
	#[allow(async_fn_in_trait)]
	pub fn subscribe_instant(when: Instant) -> Pollable {
		unsafe {
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "wasi:clocks/monotonic-clock@0.2.12")]
			unsafe extern "C" {
				#[link_name = "subscribe-instant"]
				fn wit_import0(_: i64) -> i32;
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import0(_: i64) -> i32 {
				unreachable!()
			}
			let ret = wit_import0(_rt::as_i64(when));
			super::super::super::wasi::io::poll::Pollable::from_handle(ret as u32)
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Create a `pollable` that will resolve after the specified duration has
	/// elapsed from the time this function is invoked.
	#[allow(async_fn_in_trait)]
	pub fn subscribe_duration(when: Duration) -> Pollable {
		unsafe {
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "wasi:clocks/monotonic-clock@0.2.12")]
			unsafe extern "C" {
				#[link_name = "subscribe-duration"]
				fn wit_import0(_: i64) -> i32;
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import0(_: i64) -> i32 {
				unreachable!()
			}
			let ret = wit_import0(_rt::as_i64(when));
			super::super::super::wasi::io::poll::Pollable::from_handle(ret as u32)
		}
	}
}
/// WASI Wall Clock is a clock API intended to let users query the current
/// time. The name "wall" makes an analogy to a "clock on the wall", which
/// is not necessarily monotonic as it may be reset.
///
/// It is intended to be portable at least between Unix-family platforms and
/// Windows.
///
/// A wall clock is a clock which measures the date and time according to
/// some external reference.
///
/// External references may be reset, so this clock is not necessarily
/// monotonic, making it unsuitable for measuring elapsed time.
///
/// It is intended for reporting the current date and time for humans.
#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
pub mod wall_clock {
	#[used]
	#[doc(hidden)]
	static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
	/// A time and date in seconds plus nanoseconds.
	#[repr(C)]
	#[derive(Clone, Copy)]
	pub struct Datetime {
		pub seconds: u64,
		pub nanoseconds: u32,
	}
	impl ::core::fmt::Debug for Datetime {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			f.debug_struct("Datetime")
				.field("seconds", &self.seconds)
				.field("nanoseconds", &self.nanoseconds)
				.finish()
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Read the current value of the clock.
	///
	/// This clock is not monotonic, therefore calling this function repeatedly
	/// will not necessarily produce a sequence of non-decreasing values.
	///
	/// The returned timestamps represent the number of seconds since
	/// 1970-01-01T00:00:00Z, also known as [POSIX's Seconds Since the Epoch],
	/// also known as [Unix Time].
	///
	/// The nanoseconds field of the output is always less than 1000000000.
	///
	/// [POSIX's Seconds Since the Epoch]: https://pubs.opengroup.org/onlinepubs/9699919799/xrat/V4_xbd_chap04.html#tag_21_04_16
	/// [Unix Time]: https://en.wikipedia.org/wiki/Unix_time
	#[allow(async_fn_in_trait)]
	pub fn now() -> Datetime {
		unsafe {
			#[repr(align(8))]
			struct RetArea([::core::mem::MaybeUninit<u8>; 16]);
			let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 16]);
			let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "wasi:clocks/wall-clock@0.2.12")]
			unsafe extern "C" {
				#[link_name = "now"]
				fn wit_import1(_: *mut u8);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import1(_: *mut u8) {
				unreachable!()
			}
			wit_import1(ptr0);
			let l2 = *ptr0.add(0).cast::<i64>();
			let l3 = *ptr0.add(8).cast::<i32>();
			let result4 = Datetime {
				seconds: l2 as u64,
				nanoseconds: l3 as u32,
			};
			result4
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Query the resolution of the clock.
	///
	/// The nanoseconds field of the output is always less than 1000000000.
	#[allow(async_fn_in_trait)]
	pub fn resolution() -> Datetime {
		unsafe {
			#[repr(align(8))]
			struct RetArea([::core::mem::MaybeUninit<u8>; 16]);
			let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 16]);
			let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "wasi:clocks/wall-clock@0.2.12")]
			unsafe extern "C" {
				#[link_name = "resolution"]
				fn wit_import1(_: *mut u8);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import1(_: *mut u8) {
				unreachable!()
			}
			wit_import1(ptr0);
			let l2 = *ptr0.add(0).cast::<i64>();
			let l3 = *ptr0.add(8).cast::<i32>();
			let result4 = Datetime {
				seconds: l2 as u64,
				nanoseconds: l3 as u32,
			};
			result4
		}
	}
}
