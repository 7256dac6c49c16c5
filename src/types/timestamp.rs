//! Timestamps as WAL carries them and pg_waldump prints them.

use std::fmt;

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Seconds from the Unix epoch to 2000-01-01 00:00:00 UTC.
const POSTGRES_EPOCH_SECONDS: i64 = 946_684_800;
const MICROSECONDS_PER_SECOND: i64 = 1_000_000;
/// The Gregorian calendar, and with it a time zone's yearly rule, repeats after 400 years.
const CYCLE_YEARS: i64 = 400;
const CYCLE_SECONDS: i64 = 146_097 * 86_400;
/// 1600-01-01 and 4000-01-01 in Unix seconds: times outside are printed through the time of
/// the same date in this range, because `jiff` ends with the year 9999.
const FIRST_PLAIN_SECOND: i64 = -11_676_096_000;
const LAST_PLAIN_SECOND: i64 = 64_060_588_800;

/// Microseconds since 2000-01-01 00:00:00 UTC (`TimestampTz`).
///
/// Printed in the system time zone (`TZ`, else `/etc/localtime`, else UTC) in the form of
/// `timestamptz_to_str` in `src/bin/pg_waldump/compat.c`: `2026-01-31 12:00:00.000123 CET`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TimestampTz(pub i64);

impl TimestampTz {
    /// From whole seconds since 1970-01-01 UTC.
    pub fn from_unix_seconds(seconds: i64) -> TimestampTz {
        let since_2000 = seconds.saturating_sub(POSTGRES_EPOCH_SECONDS);
        TimestampTz(since_2000.saturating_mul(MICROSECONDS_PER_SECOND))
    }

    fn write_in(self, zone: &TimeZone, f: &mut impl fmt::Write) -> fmt::Result {
        // Both divisions cut towards zero, as in C: before 2000 the fraction is negative, and
        // pg_waldump prints its sign.
        let seconds = self.0 / MICROSECONDS_PER_SECOND + POSTGRES_EPOCH_SECONDS;
        let microseconds = self.0 % MICROSECONDS_PER_SECOND;
        let cycles = if (FIRST_PLAIN_SECOND..LAST_PLAIN_SECOND).contains(&seconds) {
            0
        } else {
            (seconds - FIRST_PLAIN_SECOND).div_euclid(CYCLE_SECONDS)
        };
        let time = Timestamp::from_second(seconds - cycles * CYCLE_SECONDS)
            .expect("a second between 1600 and 4000 is in range");
        let local = zone.to_datetime(time);
        write!(
            f,
            "{}-{:02}-{:02} {:02}:{:02}:{:02}.{:06} {}",
            i64::from(local.year()) + cycles * CYCLE_YEARS,
            local.month(),
            local.day(),
            local.hour(),
            local.minute(),
            local.second(),
            microseconds,
            zone.to_offset_info(time).abbreviation(),
        )
    }
}

impl fmt::Display for TimestampTz {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // localtime() falls back to UTC as well when there is no zone to be found.
        let zone = TimeZone::try_system().unwrap_or(TimeZone::UTC);
        self.write_in(&zone, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(microseconds: i64, zone: &str) -> String {
        let zone = TimeZone::posix(zone).unwrap();
        let mut out = String::new();
        TimestampTz(microseconds).write_in(&zone, &mut out).unwrap();
        out
    }

    #[test]
    fn in_the_zone_with_its_abbreviation() {
        assert_eq!(text(0, "UTC0"), "2000-01-01 00:00:00.000000 UTC");
        assert_eq!(
            text(849_396_709_730_396, "UTC0"),
            "2026-11-30 23:31:49.730396 UTC"
        );
        assert_eq!(text(1_500_000, "CET-1"), "2000-01-01 01:00:01.500000 CET");
        let summer = "CET-1CEST,M3.5.0,M10.5.0/3";
        assert_eq!(
            text(836_006_400_000_678, summer),
            "2026-06-29 02:00:00.000678 CEST"
        );
    }

    #[test]
    fn before_2000_the_fraction_keeps_its_sign() {
        assert_eq!(text(-1, "UTC0"), "2000-01-01 00:00:00.-00001 UTC");
        assert_eq!(
            text(-86_400_000_000, "UTC0"),
            "1999-12-31 00:00:00.000000 UTC"
        );
    }

    #[test]
    fn years_beyond_the_calendar_of_the_library() {
        assert_eq!(text(i64::MAX, "UTC0"), "294277-01-09 04:00:54.775807 UTC");
        assert_eq!(text(i64::MIN, "UTC0"), "-290278-12-22 19:59:06.-775808 UTC");
    }

    #[test]
    fn display_is_in_some_zone_and_never_fails() {
        for t in [i64::MIN, -1, 0, 836_006_400_000_678, i64::MAX] {
            assert!(TimestampTz(t).to_string().len() > 26);
        }
    }
}
