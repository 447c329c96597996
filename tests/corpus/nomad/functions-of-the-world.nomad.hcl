job "world" {
  group "g" {
    task "t" {
      driver = "exec"
      config {
        command = "/bin/app"
        args    = ["--id", uuidv4(), "--at", timestamp(), "--plain"]
      }
      template {
        data        = file("app.conf.tpl")
        destination = "local/app.conf"
      }
      resources {
        cpu    = length(fileset(".", "*.conf"))
        memory = 512
      }
    }
  }
}
