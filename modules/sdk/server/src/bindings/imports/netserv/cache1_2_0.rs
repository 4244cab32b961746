// SPDX-License-Identifier: Apache-2.0
// Made from wit/ by `./dev bindings`.

/// Entries that are written although all who wanted them have gone.
#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
pub mod unread {
	#[used]
	#[doc(hidden)]
	static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
	use super::super::super::_rt;
	pub type Writer = super::super::super::netserv::cache1_1_0::entries::Writer;
	#[allow(unused_unsafe, clippy::all)]
	/// Gives an entry up that is being written, unless somebody reads it or has asked for it. Returns whether it did: the writer and its
	/// stream are of no use then, and who asks from then on begins the entry anew.
	#[allow(async_fn_in_trait)]
	pub fn give_up(writer: &Writer) -> bool {
		unsafe {
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:cache/unread@1.2.0")]
			unsafe extern "C" {
				#[link_name = "give-up"]
				fn wit_import0(_: i32) -> i32;
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import0(_: i32) -> i32 {
				unreachable!()
			}
			let ret = wit_import0((writer).handle() as i32);
			_rt::bool_lift(ret as u8)
		}
	}
}
