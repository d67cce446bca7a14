"""SQL over tables whose private columns are known by randomised reports only: every answer has an interval."""
