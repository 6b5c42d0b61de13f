//! IDs as signed integers: what a `BIGINT` of a database holds.

use core::fmt;

use crate::id::Id;

impl Id {
    /// The ID as a signed integer, which sorts as the ID does.
    ///
    /// ```
    /// use frazil_id::Id;
    ///
    /// let id: Id = "380314777215332352".parse()?;
    /// assert_eq!(id.to_i64()?, 380_314_777_215_332_352);
    /// assert_eq!(Id::from_i64(380_314_777_215_332_352)?, id);
    /// assert!(Id::from_u64(u64::MAX).to_i64().is_err());
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If it is above [`i64::MAX`]. No ID of a layout with at most 63 bits is.
    pub const fn to_i64(self) -> Result<i64, SignedError> {
        let signed = self.to_u64().cast_signed();
        if signed < 0 { Err(SignedError::TooLarge { id: self }) } else { Ok(signed) }
    }

    /// The ID that [`Id::to_i64`] made a signed integer of.
    ///
    /// # Errors
    /// If it is negative.
    pub const fn from_i64(value: i64) -> Result<Self, SignedError> {
        if value < 0 {
            return Err(SignedError::Negative { value });
        }
        Ok(Self::from_u64(value.cast_unsigned()))
    }
}

impl TryFrom<Id> for i64 {
    type Error = SignedError;

    fn try_from(id: Id) -> Result<Self, SignedError> {
        id.to_i64()
    }
}

impl TryFrom<i64> for Id {
    type Error = SignedError;

    fn try_from(value: i64) -> Result<Self, SignedError> {
        Self::from_i64(value)
    }
}

/// Why an ID and a signed integer are not the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SignedError {
    /// The ID is above what a signed integer holds.
    TooLarge {
        /// The ID.
        id: Id,
    },
    /// The number is negative, and no ID is.
    Negative {
        /// The number.
        value: i64,
    },
}

impl fmt::Display for SignedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { id } => write!(
                f,
                "ID {id} is above {}, the highest signed 64-bit integer: use a layout with at most \
                 63 bits, or keep the ID as text",
                i64::MAX
            ),
            Self::Negative { value } => {
                write!(f, "{value} is negative, and an ID is not: look at what was stored")
            }
        }
    }
}

impl core::error::Error for SignedError {}
