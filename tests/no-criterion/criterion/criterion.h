#error make check needs Criterion 2.3.3 or newer (package libcriterion-dev): install it and run configure again
