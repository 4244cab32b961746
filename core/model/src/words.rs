// SPDX-License-Identifier: Apache-2.0
//! Enums of which each variant has a word, declared in one list.

/// Declares an enum together with `ALL`, its variants in order, `as_str` and `Display`, a variant's word, and `from_word`.
///
/// With `serde` in front, JSON has the same words. With a method after the enum, each variant has one more text.
#[macro_export]
macro_rules! words {
    (@text $name:ident; $($rest:tt)*) => {};
    (@text $name:ident $(#[$doc:meta])* fn $method:ident; $($variant:ident => $text:literal,)+) => {
        impl $name {
            $(#[$doc])*
            #[must_use]
            pub const fn $method(self) -> &'static str {
                match self {
                    $($name::$variant => $text,)+
                }
            }
        }
    };
    (serde $(#[$meta:meta])* $vis:vis enum $name:ident {
        $($(#[$of:meta])* $variant:ident = $word:literal $(=> $text:literal)?,)+
    } $($method:tt)*) => {
        $crate::words! {
            $(#[$meta])*
            #[derive(::serde::Serialize, ::serde::Deserialize, ::schemars::JsonSchema)]
            $vis enum $name {
                $($(#[$of])* #[serde(rename = $word)] $variant = $word $(=> $text)?,)+
            } $($method)*
        }
    };
    ($(#[$meta:meta])* $vis:vis enum $name:ident {
        $($(#[$of:meta])* $variant:ident = $word:literal $(=> $text:literal)?,)+
    } $($method:tt)*) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis enum $name {
            $($(#[$of])* $variant,)+
        }

        impl $name {
            /// Every variant, in order.
            pub const ALL: [$name; [$($word),+].len()] = [$($name::$variant),+];

            /// Returns the variant's word.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)+
                }
            }

            /// Returns the variant of this word.
            #[must_use]
            #[allow(dead_code, reason = "some lists are only written")]
            pub fn from_word(word: &str) -> Option<$name> {
                $name::ALL.into_iter().find(|known| known.as_str() == word)
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        $crate::words! { @text $name $($method)*; $($variant => $($text)?,)+ }
    };
}
