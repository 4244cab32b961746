// SPDX-License-Identifier: Apache-2.0
// Made from wit/ by `./dev bindings`.

/// The module's lines in the node's log. Standard output and standard error of a component go there too.
#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
pub mod log {
	#[used]
	#[doc(hidden)]
	static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
	/// How important a line is.
	#[repr(u8)]
	#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
	pub enum Level {
		Error,
		Warn,
		Info,
		Debug,
	}
	impl ::core::fmt::Debug for Level {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			match self {
				Level::Error => f.debug_tuple("Level::Error").finish(),
				Level::Warn => f.debug_tuple("Level::Warn").finish(),
				Level::Info => f.debug_tuple("Level::Info").finish(),
				Level::Debug => f.debug_tuple("Level::Debug").finish(),
			}
		}
	}
	impl Level {
		#[doc(hidden)]
		pub unsafe fn _lift(val: u8) -> Level {
			if !cfg!(debug_assertions) {
				return unsafe { ::core::mem::transmute(val) };
			}
			match val {
				0 => Level::Error,
				1 => Level::Warn,
				2 => Level::Info,
				3 => Level::Debug,
				_ => panic!("invalid enum discriminant"),
			}
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Writes one line, cut at 1,024 bytes. After a burst of 256 lines 100 per second get through.
	#[allow(async_fn_in_trait)]
	pub fn log(level: Level, line: &str) -> () {
		unsafe {
			let vec0 = line;
			let ptr0 = vec0.as_ptr().cast::<u8>();
			let len0 = vec0.len();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:log/log@1.0.0")]
			unsafe extern "C" {
				#[link_name = "log"]
				fn wit_import1(_: i32, _: *mut u8, _: usize);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import1(_: i32, _: *mut u8, _: usize) {
				unreachable!()
			}
			wit_import1(level.clone() as i32, ptr0.cast_mut(), len0);
		}
	}
}
