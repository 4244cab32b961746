// SPDX-License-Identifier: Apache-2.0
// Made from wit/ by `./dev bindings`.

/// SIP messages (RFC 3261).
///
/// What frames a message is held to the letter, and so are the headers that every message has: Via, From, To, Call-ID,
/// CSeq, and Content-Length if it is there. All other values are left alone.
#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
pub mod parser {
	#[used]
	#[doc(hidden)]
	static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
	use super::super::super::_rt;
	/// One header.
	#[derive(Clone)]
	pub struct Header {
		/// Its long name in lower case, whichever form the message has.
		pub name: _rt::String,
		/// Its value without spaces around it, with folded lines joined by spaces. Bytes that are no UTF-8 become U+FFFD.
		pub value: _rt::String,
		/// Offset and length of the value in the text.
		pub place: (u32, u32),
	}
	impl ::core::fmt::Debug for Header {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			f.debug_struct("Header")
				.field("name", &self.name)
				.field("value", &self.value)
				.field("place", &self.place)
				.finish()
		}
	}
	/// The first line.
	#[derive(Clone)]
	pub enum Start {
		/// Method and request URI.
		Request((_rt::String, _rt::String)),
		/// Status code and reason phrase.
		Response((u16, _rt::String)),
	}
	impl ::core::fmt::Debug for Start {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			match self {
				Start::Request(e) => f.debug_tuple("Start::Request").field(e).finish(),
				Start::Response(e) => f.debug_tuple("Start::Response").field(e).finish(),
			}
		}
	}
	/// A message taken apart.
	#[derive(Clone)]
	pub struct Message {
		pub start: Start,
		pub headers: _rt::Vec<Header>,
		pub call_id: _rt::String,
		/// Number and method.
		pub cseq: (u32, _rt::String),
		/// URIs of From and To, without display name and angle brackets.
		pub from_uri: _rt::String,
		pub to_uri: _rt::String,
		/// Tags of From and To; empty where there is none.
		pub from_tag: _rt::String,
		pub to_tag: _rt::String,
		/// Host of the topmost Via, with its port if it has one.
		pub sent_by: _rt::String,
		/// The branch of the topmost Via; empty where there is none.
		pub branch: _rt::String,
		/// Offset and length of the body in the text: as Content-Length says, or to the end. On a stream, the next message
		/// begins behind it.
		pub body: (u32, u32),
	}
	impl ::core::fmt::Debug for Message {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			f.debug_struct("Message")
				.field("start", &self.start)
				.field("headers", &self.headers)
				.field("call-id", &self.call_id)
				.field("cseq", &self.cseq)
				.field("from-uri", &self.from_uri)
				.field("to-uri", &self.to_uri)
				.field("from-tag", &self.from_tag)
				.field("to-tag", &self.to_tag)
				.field("sent-by", &self.sent_by)
				.field("branch", &self.branch)
				.field("body", &self.body)
				.finish()
		}
	}
	/// Why a text is no SIP message.
	#[derive(Clone)]
	pub enum Error {
		/// It does not begin like one.
		NotSip,
		/// It ends before the message does; with more of it, it may be one.
		Incomplete,
		/// What is named is damaged, missing, or there twice.
		Malformed(_rt::String),
		/// More than 65,535 bytes or 128 headers.
		TooLarge,
	}
	impl ::core::fmt::Debug for Error {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			match self {
				Error::NotSip => f.debug_tuple("Error::NotSip").finish(),
				Error::Incomplete => f.debug_tuple("Error::Incomplete").finish(),
				Error::Malformed(e) => {
					f.debug_tuple("Error::Malformed").field(e).finish()
				}
				Error::TooLarge => f.debug_tuple("Error::TooLarge").finish(),
			}
		}
	}
	impl ::core::fmt::Display for Error {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			write!(f, "{:?}", self)
		}
	}
	impl ::core::error::Error for Error {}
	/// What a message may be asked for; an empty condition fits every message.
	#[derive(Clone)]
	pub struct Condition {
		/// The methods of which it has one, if there are any here. A response has that of its request.
		pub methods: _rt::Vec<_rt::String>,
		/// The least and the most that a response's status code is; no request fits then.
		pub status: Option<(u16, u16)>,
		/// Names of headers, long or compact, and what the value of one of that name contains in any case.
		pub headers: _rt::Vec<(_rt::String, _rt::String)>,
	}
	impl ::core::fmt::Debug for Condition {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			f.debug_struct("Condition")
				.field("methods", &self.methods)
				.field("status", &self.status)
				.field("headers", &self.headers)
				.finish()
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Takes a message apart.
	#[allow(async_fn_in_trait)]
	pub fn parse(text: &[u8]) -> Result<Message, Error> {
		unsafe {
			#[cfg_attr(target_pointer_width = "64", repr(align(8)))]
			#[cfg_attr(target_pointer_width = "32", repr(align(4)))]
			struct RetArea(
				[::core::mem::MaybeUninit<
					u8,
				>; 8 + 25 * ::core::mem::size_of::<*const u8>()],
			);
			let mut ret_area = RetArea(
				[::core::mem::MaybeUninit::uninit(); 8
					+ 25 * ::core::mem::size_of::<*const u8>()],
			);
			let vec0 = text;
			let ptr0 = vec0.as_ptr().cast::<u8>();
			let len0 = vec0.len();
			let ptr1 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:sip/parser@1.0.0")]
			unsafe extern "C" {
				#[link_name = "parse"]
				fn wit_import2(_: *mut u8, _: usize, _: *mut u8);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import2(_: *mut u8, _: usize, _: *mut u8) {
				unreachable!()
			}
			wit_import2(ptr0.cast_mut(), len0, ptr1);
			let l3 = i32::from(*ptr1.add(0).cast::<u8>());
			let result59 = match l3 {
				0 => {
					let e = {
						let l4 = i32::from(
							*ptr1.add(::core::mem::size_of::<*const u8>()).cast::<u8>(),
						);
						let v15 = match l4 {
							0 => {
								let e15 = {
									let l5 = *ptr1
										.add(2 * ::core::mem::size_of::<*const u8>())
										.cast::<*mut u8>();
									let l6 = *ptr1
										.add(3 * ::core::mem::size_of::<*const u8>())
										.cast::<usize>();
									let len7 = l6;
									let bytes7 = _rt::Vec::from_raw_parts(
										l5.cast(),
										len7,
										len7,
									);
									let l8 = *ptr1
										.add(4 * ::core::mem::size_of::<*const u8>())
										.cast::<*mut u8>();
									let l9 = *ptr1
										.add(5 * ::core::mem::size_of::<*const u8>())
										.cast::<usize>();
									let len10 = l9;
									let bytes10 = _rt::Vec::from_raw_parts(
										l8.cast(),
										len10,
										len10,
									);
									(_rt::string_lift(bytes7), _rt::string_lift(bytes10))
								};
								Start::Request(e15)
							}
							n => {
								debug_assert_eq!(n, 1, "invalid enum discriminant");
								let e15 = {
									let l11 = i32::from(
										*ptr1
											.add(2 * ::core::mem::size_of::<*const u8>())
											.cast::<u16>(),
									);
									let l12 = *ptr1
										.add(3 * ::core::mem::size_of::<*const u8>())
										.cast::<*mut u8>();
									let l13 = *ptr1
										.add(4 * ::core::mem::size_of::<*const u8>())
										.cast::<usize>();
									let len14 = l13;
									let bytes14 = _rt::Vec::from_raw_parts(
										l12.cast(),
										len14,
										len14,
									);
									(l11 as u16, _rt::string_lift(bytes14))
								};
								Start::Response(e15)
							}
						};
						let l16 = *ptr1
							.add(6 * ::core::mem::size_of::<*const u8>())
							.cast::<*mut u8>();
						let l17 = *ptr1
							.add(7 * ::core::mem::size_of::<*const u8>())
							.cast::<usize>();
						let base26 = l16;
						let len26 = l17;
						let mut result26 = _rt::Vec::with_capacity(len26);
						for i in 0..len26 {
							let base = base26
								.add(i * (8 + 4 * ::core::mem::size_of::<*const u8>()));
							let e26 = {
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
									.cast::<*mut u8>();
								let l22 = *base
									.add(3 * ::core::mem::size_of::<*const u8>())
									.cast::<usize>();
								let len23 = l22;
								let bytes23 = _rt::Vec::from_raw_parts(
									l21.cast(),
									len23,
									len23,
								);
								let l24 = *base
									.add(4 * ::core::mem::size_of::<*const u8>())
									.cast::<i32>();
								let l25 = *base
									.add(4 + 4 * ::core::mem::size_of::<*const u8>())
									.cast::<i32>();
								Header {
									name: _rt::string_lift(bytes20),
									value: _rt::string_lift(bytes23),
									place: (l24 as u32, l25 as u32),
								}
							};
							result26.push(e26);
						}
						_rt::cabi_dealloc(
							base26,
							len26 * (8 + 4 * ::core::mem::size_of::<*const u8>()),
							::core::mem::size_of::<*const u8>(),
						);
						let l27 = *ptr1
							.add(8 * ::core::mem::size_of::<*const u8>())
							.cast::<*mut u8>();
						let l28 = *ptr1
							.add(9 * ::core::mem::size_of::<*const u8>())
							.cast::<usize>();
						let len29 = l28;
						let bytes29 = _rt::Vec::from_raw_parts(l27.cast(), len29, len29);
						let l30 = *ptr1
							.add(10 * ::core::mem::size_of::<*const u8>())
							.cast::<i32>();
						let l31 = *ptr1
							.add(11 * ::core::mem::size_of::<*const u8>())
							.cast::<*mut u8>();
						let l32 = *ptr1
							.add(12 * ::core::mem::size_of::<*const u8>())
							.cast::<usize>();
						let len33 = l32;
						let bytes33 = _rt::Vec::from_raw_parts(l31.cast(), len33, len33);
						let l34 = *ptr1
							.add(13 * ::core::mem::size_of::<*const u8>())
							.cast::<*mut u8>();
						let l35 = *ptr1
							.add(14 * ::core::mem::size_of::<*const u8>())
							.cast::<usize>();
						let len36 = l35;
						let bytes36 = _rt::Vec::from_raw_parts(l34.cast(), len36, len36);
						let l37 = *ptr1
							.add(15 * ::core::mem::size_of::<*const u8>())
							.cast::<*mut u8>();
						let l38 = *ptr1
							.add(16 * ::core::mem::size_of::<*const u8>())
							.cast::<usize>();
						let len39 = l38;
						let bytes39 = _rt::Vec::from_raw_parts(l37.cast(), len39, len39);
						let l40 = *ptr1
							.add(17 * ::core::mem::size_of::<*const u8>())
							.cast::<*mut u8>();
						let l41 = *ptr1
							.add(18 * ::core::mem::size_of::<*const u8>())
							.cast::<usize>();
						let len42 = l41;
						let bytes42 = _rt::Vec::from_raw_parts(l40.cast(), len42, len42);
						let l43 = *ptr1
							.add(19 * ::core::mem::size_of::<*const u8>())
							.cast::<*mut u8>();
						let l44 = *ptr1
							.add(20 * ::core::mem::size_of::<*const u8>())
							.cast::<usize>();
						let len45 = l44;
						let bytes45 = _rt::Vec::from_raw_parts(l43.cast(), len45, len45);
						let l46 = *ptr1
							.add(21 * ::core::mem::size_of::<*const u8>())
							.cast::<*mut u8>();
						let l47 = *ptr1
							.add(22 * ::core::mem::size_of::<*const u8>())
							.cast::<usize>();
						let len48 = l47;
						let bytes48 = _rt::Vec::from_raw_parts(l46.cast(), len48, len48);
						let l49 = *ptr1
							.add(23 * ::core::mem::size_of::<*const u8>())
							.cast::<*mut u8>();
						let l50 = *ptr1
							.add(24 * ::core::mem::size_of::<*const u8>())
							.cast::<usize>();
						let len51 = l50;
						let bytes51 = _rt::Vec::from_raw_parts(l49.cast(), len51, len51);
						let l52 = *ptr1
							.add(25 * ::core::mem::size_of::<*const u8>())
							.cast::<i32>();
						let l53 = *ptr1
							.add(4 + 25 * ::core::mem::size_of::<*const u8>())
							.cast::<i32>();
						Message {
							start: v15,
							headers: result26,
							call_id: _rt::string_lift(bytes29),
							cseq: (l30 as u32, _rt::string_lift(bytes33)),
							from_uri: _rt::string_lift(bytes36),
							to_uri: _rt::string_lift(bytes39),
							from_tag: _rt::string_lift(bytes42),
							to_tag: _rt::string_lift(bytes45),
							sent_by: _rt::string_lift(bytes48),
							branch: _rt::string_lift(bytes51),
							body: (l52 as u32, l53 as u32),
						}
					};
					Ok(e)
				}
				1 => {
					let e = {
						let l54 = i32::from(
							*ptr1.add(::core::mem::size_of::<*const u8>()).cast::<u8>(),
						);
						let v58 = match l54 {
							0 => Error::NotSip,
							1 => Error::Incomplete,
							2 => {
								let e58 = {
									let l55 = *ptr1
										.add(2 * ::core::mem::size_of::<*const u8>())
										.cast::<*mut u8>();
									let l56 = *ptr1
										.add(3 * ::core::mem::size_of::<*const u8>())
										.cast::<usize>();
									let len57 = l56;
									let bytes57 = _rt::Vec::from_raw_parts(
										l55.cast(),
										len57,
										len57,
									);
									_rt::string_lift(bytes57)
								};
								Error::Malformed(e58)
							}
							n => {
								debug_assert_eq!(n, 3, "invalid enum discriminant");
								Error::TooLarge
							}
						};
						v58
					};
					Err(e)
				}
				_ => _rt::invalid_enum_discriminant(),
			};
			result59
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Returns the number of the first condition that a message fits.
	#[allow(async_fn_in_trait)]
	pub fn first_match(
		text: &[u8],
		conditions: &[Condition],
	) -> Result<Option<u32>, Error> {
		unsafe {
			let mut cleanup_list = _rt::Vec::new();
			#[cfg_attr(target_pointer_width = "64", repr(align(8)))]
			#[cfg_attr(target_pointer_width = "32", repr(align(4)))]
			struct RetArea(
				[::core::mem::MaybeUninit<u8>; 4 * ::core::mem::size_of::<*const u8>()],
			);
			let mut ret_area = RetArea(
				[::core::mem::MaybeUninit::uninit(); 4
					* ::core::mem::size_of::<*const u8>()],
			);
			let vec0 = text;
			let ptr0 = vec0.as_ptr().cast::<u8>();
			let len0 = vec0.len();
			let vec9 = conditions;
			let len9 = vec9.len();
			let layout9 = _rt::alloc::Layout::from_size_align(
					vec9.len() * (8 + 4 * ::core::mem::size_of::<*const u8>()),
					::core::mem::size_of::<*const u8>(),
				)
				.unwrap();
			let (result9, _cleanup9) = wit_bindgen::rt::Cleanup::new(layout9);
			for (i, e) in vec9.into_iter().enumerate() {
				let base = result9
					.add(i * (8 + 4 * ::core::mem::size_of::<*const u8>()));
				{
					let Condition {
						methods: methods1,
						status: status1,
						headers: headers1,
					} = e;
					let vec3 = methods1;
					let len3 = vec3.len();
					let layout3 = _rt::alloc::Layout::from_size_align(
							vec3.len() * (2 * ::core::mem::size_of::<*const u8>()),
							::core::mem::size_of::<*const u8>(),
						)
						.unwrap();
					let (result3, _cleanup3) = wit_bindgen::rt::Cleanup::new(layout3);
					cleanup_list.extend(_cleanup3);
					for (i, e) in vec3.into_iter().enumerate() {
						let base = result3
							.add(i * (2 * ::core::mem::size_of::<*const u8>()));
						{
							let vec2 = e;
							let ptr2 = vec2.as_ptr().cast::<u8>();
							let len2 = vec2.len();
							*base
								.add(::core::mem::size_of::<*const u8>())
								.cast::<usize>() = len2;
							*base.add(0).cast::<*mut u8>() = ptr2.cast_mut();
						}
					}
					*base.add(::core::mem::size_of::<*const u8>()).cast::<usize>() = len3;
					*base.add(0).cast::<*mut u8>() = result3;
					match status1 {
						Some(e) => {
							*base
								.add(2 * ::core::mem::size_of::<*const u8>())
								.cast::<u8>() = (1i32) as u8;
							let (t4_0, t4_1) = e;
							*base
								.add(2 + 2 * ::core::mem::size_of::<*const u8>())
								.cast::<u16>() = (_rt::as_i32(t4_0)) as u16;
							*base
								.add(4 + 2 * ::core::mem::size_of::<*const u8>())
								.cast::<u16>() = (_rt::as_i32(t4_1)) as u16;
						}
						None => {
							*base
								.add(2 * ::core::mem::size_of::<*const u8>())
								.cast::<u8>() = (0i32) as u8;
						}
					};
					let vec8 = headers1;
					let len8 = vec8.len();
					let layout8 = _rt::alloc::Layout::from_size_align(
							vec8.len() * (4 * ::core::mem::size_of::<*const u8>()),
							::core::mem::size_of::<*const u8>(),
						)
						.unwrap();
					let (result8, _cleanup8) = wit_bindgen::rt::Cleanup::new(layout8);
					cleanup_list.extend(_cleanup8);
					for (i, e) in vec8.into_iter().enumerate() {
						let base = result8
							.add(i * (4 * ::core::mem::size_of::<*const u8>()));
						{
							let (t5_0, t5_1) = e;
							let vec6 = t5_0;
							let ptr6 = vec6.as_ptr().cast::<u8>();
							let len6 = vec6.len();
							*base
								.add(::core::mem::size_of::<*const u8>())
								.cast::<usize>() = len6;
							*base.add(0).cast::<*mut u8>() = ptr6.cast_mut();
							let vec7 = t5_1;
							let ptr7 = vec7.as_ptr().cast::<u8>();
							let len7 = vec7.len();
							*base
								.add(3 * ::core::mem::size_of::<*const u8>())
								.cast::<usize>() = len7;
							*base
								.add(2 * ::core::mem::size_of::<*const u8>())
								.cast::<*mut u8>() = ptr7.cast_mut();
						}
					}
					*base
						.add(8 + 3 * ::core::mem::size_of::<*const u8>())
						.cast::<usize>() = len8;
					*base
						.add(8 + 2 * ::core::mem::size_of::<*const u8>())
						.cast::<*mut u8>() = result8;
				}
			}
			let ptr10 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:sip/parser@1.0.0")]
			unsafe extern "C" {
				#[link_name = "first-match"]
				fn wit_import11(_: *mut u8, _: usize, _: *mut u8, _: usize, _: *mut u8);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import11(
				_: *mut u8,
				_: usize,
				_: *mut u8,
				_: usize,
				_: *mut u8,
			) {
				unreachable!()
			}
			wit_import11(ptr0.cast_mut(), len0, result9, len9, ptr10);
			let l12 = i32::from(*ptr10.add(0).cast::<u8>());
			let result20 = match l12 {
				0 => {
					let e = {
						let l13 = i32::from(
							*ptr10.add(::core::mem::size_of::<*const u8>()).cast::<u8>(),
						);
						match l13 {
							0 => None,
							1 => {
								let e = {
									let l14 = *ptr10
										.add(4 + 1 * ::core::mem::size_of::<*const u8>())
										.cast::<i32>();
									l14 as u32
								};
								Some(e)
							}
							_ => _rt::invalid_enum_discriminant(),
						}
					};
					Ok(e)
				}
				1 => {
					let e = {
						let l15 = i32::from(
							*ptr10.add(::core::mem::size_of::<*const u8>()).cast::<u8>(),
						);
						let v19 = match l15 {
							0 => Error::NotSip,
							1 => Error::Incomplete,
							2 => {
								let e19 = {
									let l16 = *ptr10
										.add(2 * ::core::mem::size_of::<*const u8>())
										.cast::<*mut u8>();
									let l17 = *ptr10
										.add(3 * ::core::mem::size_of::<*const u8>())
										.cast::<usize>();
									let len18 = l17;
									let bytes18 = _rt::Vec::from_raw_parts(
										l16.cast(),
										len18,
										len18,
									);
									_rt::string_lift(bytes18)
								};
								Error::Malformed(e19)
							}
							n => {
								debug_assert_eq!(n, 3, "invalid enum discriminant");
								Error::TooLarge
							}
						};
						v19
					};
					Err(e)
				}
				_ => _rt::invalid_enum_discriminant(),
			};
			result20
		}
	}
}
