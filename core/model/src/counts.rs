// SPDX-License-Identifier: Apache-2.0
//! Structs of counts of which each has a word, declared in one list.

/// Declares a struct of counts, and `all`: the counts that have a word, in order, with it.
///
/// With `sum` in front, such counts can be added. A field of another kind can follow, after `with`.
#[macro_export]
macro_rules! counts {
    (sum $(#[$meta:meta])* $vis:vis struct $name:ident {
        $($(#[$of:meta])* $field:ident $(= $word:literal)?,)+
    }) => {
        $crate::counts! {
            $(#[$meta])*
            #[derive(Copy)]
            $vis struct $name { $($(#[$of])* $field $(= $word)?,)+ }
        }

        impl ::std::ops::AddAssign for $name {
            fn add_assign(&mut self, more: $name) {
                $(self.$field += more.$field;)+
            }
        }

        impl ::std::ops::Add for $name {
            type Output = $name;

            fn add(mut self, more: $name) -> $name {
                self += more;
                self
            }
        }
    };
    ($(#[$meta:meta])* $vis:vis struct $name:ident {
        $($(#[$of:meta])* $field:ident $(= $word:literal)?,)+
    } $(with { $(#[$of_other:meta])* $other:ident: $kind:ty })?) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        $vis struct $name {
            $($(#[$of])* pub $field: u64,)+
            $($(#[$of_other])* pub $other: $kind,)?
        }

        impl $name {
            /// Returns each count that has a word, in order, with it.
            #[must_use]
            pub fn all(&self) -> Vec<(&'static str, u64)> {
                vec![$($(($word, self.$field),)?)+]
            }
        }
    };
}
