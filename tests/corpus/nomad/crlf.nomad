job "ping" {
  group "net" {
    task "probe" {
      resources {
        memory = 77
      }
      driver = "exec"
      config {
        command = "/bin/ping"
        args    = ["-c", "3", "gateway"]
      }
    }
  }
}
