job "tabs" {
	group "g" {
		task "t" {
			driver = "exec"
			config {
				command = "/bin/x"
			}
			resources {
				cpu	= 80
				memory	= 90
			}
		}
	}
}