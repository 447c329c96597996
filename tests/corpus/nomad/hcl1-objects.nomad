job "objects" {
  group "g" {
    task "t" {
      driver = "docker"
      config = {
        image = "busybox"
        command = "sleep"
        args = ["60"]
      }
      env = {
        ONE = "1", TWO = "2"
        THREE = 3
      }
      resources = { cpu = 20, memory = 16 }
    }
  }
}
