"""What every part of the collector uses: logs, limits, schedules, ids, clocks."""
