job "patch" {
  type = "sysbatch"
  group "g" {
    task "apt" {
      driver = "raw_exec"
      config {
        command = "/bin/sh"
        args    = ["-c", "apt-get update"]
      }
    }
  }
}
