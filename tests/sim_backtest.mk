# sim backtest: tests.
