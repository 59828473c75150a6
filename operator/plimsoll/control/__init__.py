"""The async shell: carries values between the pure core and the ports."""
