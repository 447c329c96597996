job "ping" {
  group "net" {
    task "probe" {
      driver = "exec"
      config {
        command = "/bin/ping"
        args    = ["-c", "3", "gateway"]
      }
    }
  }
}
