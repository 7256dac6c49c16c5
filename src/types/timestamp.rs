//! Points in time as PostgreSQL stores them.

use std::fmt;

use jiff::Timestamp;
use jiff::tz::TimeZone;

const MICROS_PER_SECOND: i64 = 1_000_000;
/// 2000-01-01 in seconds since 1970-01-01.
const POSTGRES_EPOCH_SECONDS: i64 = 946_684_800;
/// The Gregorian calendar, weekdays included, repeats every 400 years.
const CYCLE_YEARS: i64 = 400;
const CYCLE_SECONDS: i64 = 146_097 * 86_400;

/// A `TimestampTz`: microseconds since 2000-01-01 00:00 UTC.
///
/// Prints as pg_waldump's `timestamptz_to_str` does (`src/bin/pg_waldump/compat.c`):
/// `2024-05-01 12:00:00.123456 UTC`, in the time zone of the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TimestampTz(pub i64);

impl TimestampTz {
    /// Prints in this time zone. Any value prints: years beyond what the calendar library knows
    /// are reckoned one or more whole cycles off.
    fn write_in(self, zone: &TimeZone, f: &mut dyn fmt::Write) -> fmt::Result {
        // Both round towards zero, so a time before 2000 shows a negative fraction. pg_waldump
        // prints it like that.
        let seconds = self.0 / MICROS_PER_SECOND + POSTGRES_EPOCH_SECONDS;
        let micros = self.0 % MICROS_PER_SECOND;
        let (min, max) = (Timestamp::MIN.as_second(), Timestamp::MAX.as_second());
        let cycles = if seconds > max {
            (seconds - max) / CYCLE_SECONDS + 1
        } else if seconds < min {
            (seconds - min) / CYCLE_SECONDS - 1
        } else {
            0
        };
        let known = Timestamp::from_second(seconds - cycles * CYCLE_SECONDS)
            .expect("folded into the range of the calendar");
        let offset = zone.to_offset_info(known);
        let known = known.to_zoned_datetime(zone.clone());
        write!(
            f,
            "{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{micros:06} {}",
            i64::from(known.year()) + cycles * CYCLE_YEARS,
            known.month(),
            known.day(),
            known.hour(),
            known.minute(),
            known.second(),
            offset.abbreviation()
        )
    }
}

impl fmt::Display for TimestampTz {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A system without a usable time zone is in UTC, as it is for localtime().
        let zone = TimeZone::try_system().unwrap_or(TimeZone::UTC);
        self.write_in(&zone, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(micros: i64, zone: &TimeZone) -> String {
        let mut out = String::new();
        TimestampTz(micros).write_in(zone, &mut out).unwrap();
        out
    }

    #[test]
    fn prints_as_pg_waldump_does() {
        let berlin = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        assert_eq!(text(0, &TimeZone::UTC), "2000-01-01 00:00:00.000000 UTC");
        assert_eq!(
            text(770_990_400_000_042, &berlin),
            "2024-06-06 14:00:00.000042 CEST"
        );
        assert_eq!(
            text(757_382_400_000_000, &berlin),
            "2024-01-01 01:00:00.000000 CET"
        );
        // As C does, the fraction of a time before the epoch keeps its sign.
        assert_eq!(text(-5, &TimeZone::UTC), "2000-01-01 00:00:00.-00005 UTC");
    }

    #[test]
    fn every_value_prints() {
        assert_eq!(
            text(i64::MAX, &TimeZone::UTC),
            "294277-01-09 04:00:54.775807 UTC"
        );
        assert_eq!(
            text(i64::MIN, &TimeZone::UTC),
            "-290278-12-22 19:59:06.-775808 UTC"
        );
        for micros in [i64::MAX / 2, i64::MIN / 2, i64::MAX / 30, i64::MIN / 30] {
            text(micros, &TimeZone::UTC);
        }
    }
}
