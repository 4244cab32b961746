// SPDX-License-Identifier: Apache-2.0
// Made from wit/ by `./dev bindings`.

/// Requests whose body goes to another server without the instance, and whose answer the client gets also if the instance cannot wait for it:
/// long uploads, and answers that take their time.
#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
pub mod forwarding {
	#[used]
	#[doc(hidden)]
	static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
	use super::super::super::_rt;
	pub type ErrorCode = super::super::super::wasi::http::types::ErrorCode;
	pub type FutureIncomingResponse = super::super::super::wasi::http::types::FutureIncomingResponse;
	pub type IncomingRequest = super::super::super::wasi::http::types::IncomingRequest;
	pub type OutgoingRequest = super::super::super::wasi::http::types::OutgoingRequest;
	#[allow(unused_unsafe, clippy::all)]
	/// Does what `handle` of `wasi:http/outgoing-handler` does with `to`, and the node sends the body of `request` as that of `to`, as it comes.
	/// `body-bytes` of the module's limits does not bound it, nor does its length, if `to` says one, count.
	///
	/// If the instance has not answered `request` by its deadline (`request-ms`), when its version is replaced, or after half a second while other
	/// requests wait for an instance, it ends. If the answer to `to` has not come by then, the node gives it to the client when it comes, as it is: without what the
	/// instance would have changed. Whoever must see each answer uses `outgoing-handler`. Such an exchange may be silent for one hour and take 24.
	///
	/// Errors: those of `outgoing-handler`; `internal-error` if the instance does not answer `request`, or has asked for its body, or `to` for its
	/// own.
	#[allow(async_fn_in_trait)]
	pub fn forward(
		request: IncomingRequest,
		to: OutgoingRequest,
	) -> Result<FutureIncomingResponse, ErrorCode> {
		unsafe {
			#[repr(align(8))]
			struct RetArea(
				[::core::mem::MaybeUninit<
					u8,
				>; 24 + 4 * ::core::mem::size_of::<*const u8>()],
			);
			let mut ret_area = RetArea(
				[::core::mem::MaybeUninit::uninit(); 24
					+ 4 * ::core::mem::size_of::<*const u8>()],
			);
			let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:http/forwarding@1.3.0")]
			unsafe extern "C" {
				#[link_name = "forward"]
				fn wit_import1(_: i32, _: i32, _: *mut u8);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import1(_: i32, _: i32, _: *mut u8) {
				unreachable!()
			}
			wit_import1(
				(&request).take_handle() as i32,
				(&to).take_handle() as i32,
				ptr0,
			);
			let l2 = i32::from(*ptr0.add(0).cast::<u8>());
			let result67 = match l2 {
				0 => {
					let e = {
						let l3 = *ptr0.add(8).cast::<i32>();
						super::super::super::wasi::http::types::FutureIncomingResponse::from_handle(
							l3 as u32,
						)
					};
					Ok(e)
				}
				1 => {
					let e = {
						let l4 = i32::from(*ptr0.add(8).cast::<u8>());
						use super::super::super::wasi::http::types::ErrorCode as V66;
						let v66 = match l4 {
							0 => V66::DnsTimeout,
							1 => {
								let e66 = {
									let l5 = i32::from(*ptr0.add(16).cast::<u8>());
									let l9 = i32::from(
										*ptr0
											.add(16 + 3 * ::core::mem::size_of::<*const u8>())
											.cast::<u8>(),
									);
									super::super::super::wasi::http::types::DnsErrorPayload {
										rcode: match l5 {
											0 => None,
											1 => {
												let e = {
													let l6 = *ptr0
														.add(16 + 1 * ::core::mem::size_of::<*const u8>())
														.cast::<*mut u8>();
													let l7 = *ptr0
														.add(16 + 2 * ::core::mem::size_of::<*const u8>())
														.cast::<usize>();
													let len8 = l7;
													let bytes8 = _rt::Vec::from_raw_parts(
														l6.cast(),
														len8,
														len8,
													);
													_rt::string_lift(bytes8)
												};
												Some(e)
											}
											_ => _rt::invalid_enum_discriminant(),
										},
										info_code: match l9 {
											0 => None,
											1 => {
												let e = {
													let l10 = i32::from(
														*ptr0
															.add(18 + 3 * ::core::mem::size_of::<*const u8>())
															.cast::<u16>(),
													);
													l10 as u16
												};
												Some(e)
											}
											_ => _rt::invalid_enum_discriminant(),
										},
									}
								};
								V66::DnsError(e66)
							}
							2 => V66::DestinationNotFound,
							3 => V66::DestinationUnavailable,
							4 => V66::DestinationIpProhibited,
							5 => V66::DestinationIpUnroutable,
							6 => V66::ConnectionRefused,
							7 => V66::ConnectionTerminated,
							8 => V66::ConnectionTimeout,
							9 => V66::ConnectionReadTimeout,
							10 => V66::ConnectionWriteTimeout,
							11 => V66::ConnectionLimitReached,
							12 => V66::TlsProtocolError,
							13 => V66::TlsCertificateError,
							14 => {
								let e66 = {
									let l11 = i32::from(*ptr0.add(16).cast::<u8>());
									let l13 = i32::from(
										*ptr0
											.add(16 + 1 * ::core::mem::size_of::<*const u8>())
											.cast::<u8>(),
									);
									super::super::super::wasi::http::types::TlsAlertReceivedPayload {
										alert_id: match l11 {
											0 => None,
											1 => {
												let e = {
													let l12 = i32::from(*ptr0.add(17).cast::<u8>());
													l12 as u8
												};
												Some(e)
											}
											_ => _rt::invalid_enum_discriminant(),
										},
										alert_message: match l13 {
											0 => None,
											1 => {
												let e = {
													let l14 = *ptr0
														.add(16 + 2 * ::core::mem::size_of::<*const u8>())
														.cast::<*mut u8>();
													let l15 = *ptr0
														.add(16 + 3 * ::core::mem::size_of::<*const u8>())
														.cast::<usize>();
													let len16 = l15;
													let bytes16 = _rt::Vec::from_raw_parts(
														l14.cast(),
														len16,
														len16,
													);
													_rt::string_lift(bytes16)
												};
												Some(e)
											}
											_ => _rt::invalid_enum_discriminant(),
										},
									}
								};
								V66::TlsAlertReceived(e66)
							}
							15 => V66::HttpRequestDenied,
							16 => V66::HttpRequestLengthRequired,
							17 => {
								let e66 = {
									let l17 = i32::from(*ptr0.add(16).cast::<u8>());
									match l17 {
										0 => None,
										1 => {
											let e = {
												let l18 = *ptr0.add(24).cast::<i64>();
												l18 as u64
											};
											Some(e)
										}
										_ => _rt::invalid_enum_discriminant(),
									}
								};
								V66::HttpRequestBodySize(e66)
							}
							18 => V66::HttpRequestMethodInvalid,
							19 => V66::HttpRequestUriInvalid,
							20 => V66::HttpRequestUriTooLong,
							21 => {
								let e66 = {
									let l19 = i32::from(*ptr0.add(16).cast::<u8>());
									match l19 {
										0 => None,
										1 => {
											let e = {
												let l20 = *ptr0.add(20).cast::<i32>();
												l20 as u32
											};
											Some(e)
										}
										_ => _rt::invalid_enum_discriminant(),
									}
								};
								V66::HttpRequestHeaderSectionSize(e66)
							}
							22 => {
								let e66 = {
									let l21 = i32::from(*ptr0.add(16).cast::<u8>());
									match l21 {
										0 => None,
										1 => {
											let e = {
												let l22 = i32::from(
													*ptr0
														.add(16 + 1 * ::core::mem::size_of::<*const u8>())
														.cast::<u8>(),
												);
												let l26 = i32::from(
													*ptr0
														.add(16 + 4 * ::core::mem::size_of::<*const u8>())
														.cast::<u8>(),
												);
												super::super::super::wasi::http::types::FieldSizePayload {
													field_name: match l22 {
														0 => None,
														1 => {
															let e = {
																let l23 = *ptr0
																	.add(16 + 2 * ::core::mem::size_of::<*const u8>())
																	.cast::<*mut u8>();
																let l24 = *ptr0
																	.add(16 + 3 * ::core::mem::size_of::<*const u8>())
																	.cast::<usize>();
																let len25 = l24;
																let bytes25 = _rt::Vec::from_raw_parts(
																	l23.cast(),
																	len25,
																	len25,
																);
																_rt::string_lift(bytes25)
															};
															Some(e)
														}
														_ => _rt::invalid_enum_discriminant(),
													},
													field_size: match l26 {
														0 => None,
														1 => {
															let e = {
																let l27 = *ptr0
																	.add(20 + 4 * ::core::mem::size_of::<*const u8>())
																	.cast::<i32>();
																l27 as u32
															};
															Some(e)
														}
														_ => _rt::invalid_enum_discriminant(),
													},
												}
											};
											Some(e)
										}
										_ => _rt::invalid_enum_discriminant(),
									}
								};
								V66::HttpRequestHeaderSize(e66)
							}
							23 => {
								let e66 = {
									let l28 = i32::from(*ptr0.add(16).cast::<u8>());
									match l28 {
										0 => None,
										1 => {
											let e = {
												let l29 = *ptr0.add(20).cast::<i32>();
												l29 as u32
											};
											Some(e)
										}
										_ => _rt::invalid_enum_discriminant(),
									}
								};
								V66::HttpRequestTrailerSectionSize(e66)
							}
							24 => {
								let e66 = {
									let l30 = i32::from(*ptr0.add(16).cast::<u8>());
									let l34 = i32::from(
										*ptr0
											.add(16 + 3 * ::core::mem::size_of::<*const u8>())
											.cast::<u8>(),
									);
									super::super::super::wasi::http::types::FieldSizePayload {
										field_name: match l30 {
											0 => None,
											1 => {
												let e = {
													let l31 = *ptr0
														.add(16 + 1 * ::core::mem::size_of::<*const u8>())
														.cast::<*mut u8>();
													let l32 = *ptr0
														.add(16 + 2 * ::core::mem::size_of::<*const u8>())
														.cast::<usize>();
													let len33 = l32;
													let bytes33 = _rt::Vec::from_raw_parts(
														l31.cast(),
														len33,
														len33,
													);
													_rt::string_lift(bytes33)
												};
												Some(e)
											}
											_ => _rt::invalid_enum_discriminant(),
										},
										field_size: match l34 {
											0 => None,
											1 => {
												let e = {
													let l35 = *ptr0
														.add(20 + 3 * ::core::mem::size_of::<*const u8>())
														.cast::<i32>();
													l35 as u32
												};
												Some(e)
											}
											_ => _rt::invalid_enum_discriminant(),
										},
									}
								};
								V66::HttpRequestTrailerSize(e66)
							}
							25 => V66::HttpResponseIncomplete,
							26 => {
								let e66 = {
									let l36 = i32::from(*ptr0.add(16).cast::<u8>());
									match l36 {
										0 => None,
										1 => {
											let e = {
												let l37 = *ptr0.add(20).cast::<i32>();
												l37 as u32
											};
											Some(e)
										}
										_ => _rt::invalid_enum_discriminant(),
									}
								};
								V66::HttpResponseHeaderSectionSize(e66)
							}
							27 => {
								let e66 = {
									let l38 = i32::from(*ptr0.add(16).cast::<u8>());
									let l42 = i32::from(
										*ptr0
											.add(16 + 3 * ::core::mem::size_of::<*const u8>())
											.cast::<u8>(),
									);
									super::super::super::wasi::http::types::FieldSizePayload {
										field_name: match l38 {
											0 => None,
											1 => {
												let e = {
													let l39 = *ptr0
														.add(16 + 1 * ::core::mem::size_of::<*const u8>())
														.cast::<*mut u8>();
													let l40 = *ptr0
														.add(16 + 2 * ::core::mem::size_of::<*const u8>())
														.cast::<usize>();
													let len41 = l40;
													let bytes41 = _rt::Vec::from_raw_parts(
														l39.cast(),
														len41,
														len41,
													);
													_rt::string_lift(bytes41)
												};
												Some(e)
											}
											_ => _rt::invalid_enum_discriminant(),
										},
										field_size: match l42 {
											0 => None,
											1 => {
												let e = {
													let l43 = *ptr0
														.add(20 + 3 * ::core::mem::size_of::<*const u8>())
														.cast::<i32>();
													l43 as u32
												};
												Some(e)
											}
											_ => _rt::invalid_enum_discriminant(),
										},
									}
								};
								V66::HttpResponseHeaderSize(e66)
							}
							28 => {
								let e66 = {
									let l44 = i32::from(*ptr0.add(16).cast::<u8>());
									match l44 {
										0 => None,
										1 => {
											let e = {
												let l45 = *ptr0.add(24).cast::<i64>();
												l45 as u64
											};
											Some(e)
										}
										_ => _rt::invalid_enum_discriminant(),
									}
								};
								V66::HttpResponseBodySize(e66)
							}
							29 => {
								let e66 = {
									let l46 = i32::from(*ptr0.add(16).cast::<u8>());
									match l46 {
										0 => None,
										1 => {
											let e = {
												let l47 = *ptr0.add(20).cast::<i32>();
												l47 as u32
											};
											Some(e)
										}
										_ => _rt::invalid_enum_discriminant(),
									}
								};
								V66::HttpResponseTrailerSectionSize(e66)
							}
							30 => {
								let e66 = {
									let l48 = i32::from(*ptr0.add(16).cast::<u8>());
									let l52 = i32::from(
										*ptr0
											.add(16 + 3 * ::core::mem::size_of::<*const u8>())
											.cast::<u8>(),
									);
									super::super::super::wasi::http::types::FieldSizePayload {
										field_name: match l48 {
											0 => None,
											1 => {
												let e = {
													let l49 = *ptr0
														.add(16 + 1 * ::core::mem::size_of::<*const u8>())
														.cast::<*mut u8>();
													let l50 = *ptr0
														.add(16 + 2 * ::core::mem::size_of::<*const u8>())
														.cast::<usize>();
													let len51 = l50;
													let bytes51 = _rt::Vec::from_raw_parts(
														l49.cast(),
														len51,
														len51,
													);
													_rt::string_lift(bytes51)
												};
												Some(e)
											}
											_ => _rt::invalid_enum_discriminant(),
										},
										field_size: match l52 {
											0 => None,
											1 => {
												let e = {
													let l53 = *ptr0
														.add(20 + 3 * ::core::mem::size_of::<*const u8>())
														.cast::<i32>();
													l53 as u32
												};
												Some(e)
											}
											_ => _rt::invalid_enum_discriminant(),
										},
									}
								};
								V66::HttpResponseTrailerSize(e66)
							}
							31 => {
								let e66 = {
									let l54 = i32::from(*ptr0.add(16).cast::<u8>());
									match l54 {
										0 => None,
										1 => {
											let e = {
												let l55 = *ptr0
													.add(16 + 1 * ::core::mem::size_of::<*const u8>())
													.cast::<*mut u8>();
												let l56 = *ptr0
													.add(16 + 2 * ::core::mem::size_of::<*const u8>())
													.cast::<usize>();
												let len57 = l56;
												let bytes57 = _rt::Vec::from_raw_parts(
													l55.cast(),
													len57,
													len57,
												);
												_rt::string_lift(bytes57)
											};
											Some(e)
										}
										_ => _rt::invalid_enum_discriminant(),
									}
								};
								V66::HttpResponseTransferCoding(e66)
							}
							32 => {
								let e66 = {
									let l58 = i32::from(*ptr0.add(16).cast::<u8>());
									match l58 {
										0 => None,
										1 => {
											let e = {
												let l59 = *ptr0
													.add(16 + 1 * ::core::mem::size_of::<*const u8>())
													.cast::<*mut u8>();
												let l60 = *ptr0
													.add(16 + 2 * ::core::mem::size_of::<*const u8>())
													.cast::<usize>();
												let len61 = l60;
												let bytes61 = _rt::Vec::from_raw_parts(
													l59.cast(),
													len61,
													len61,
												);
												_rt::string_lift(bytes61)
											};
											Some(e)
										}
										_ => _rt::invalid_enum_discriminant(),
									}
								};
								V66::HttpResponseContentCoding(e66)
							}
							33 => V66::HttpResponseTimeout,
							34 => V66::HttpUpgradeFailed,
							35 => V66::HttpProtocolError,
							36 => V66::LoopDetected,
							37 => V66::ConfigurationError,
							n => {
								debug_assert_eq!(n, 38, "invalid enum discriminant");
								let e66 = {
									let l62 = i32::from(*ptr0.add(16).cast::<u8>());
									match l62 {
										0 => None,
										1 => {
											let e = {
												let l63 = *ptr0
													.add(16 + 1 * ::core::mem::size_of::<*const u8>())
													.cast::<*mut u8>();
												let l64 = *ptr0
													.add(16 + 2 * ::core::mem::size_of::<*const u8>())
													.cast::<usize>();
												let len65 = l64;
												let bytes65 = _rt::Vec::from_raw_parts(
													l63.cast(),
													len65,
													len65,
												);
												_rt::string_lift(bytes65)
											};
											Some(e)
										}
										_ => _rt::invalid_enum_discriminant(),
									}
								};
								V66::InternalError(e66)
							}
						};
						v66
					};
					Err(e)
				}
				_ => _rt::invalid_enum_discriminant(),
			};
			result67
		}
	}
}
